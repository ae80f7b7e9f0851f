import { budgetPolicy } from "../../policy/budget-policy.ts";
import type { LimitPolicies, Route, TotalBudget } from "../../policy/limit-policies.ts";
import { commonName } from "../../policy/partition-name.ts";
import type { Role } from "../../policy/roles.ts";
import { isServiceName } from "../../policy/service-name.ts";

/** A longer delay would take a host out of a run; such numbers are mistakes, or mean that the host must not be crawled. */
const CRAWL_DELAY_S_MAX = 60;
/** Bounds the memory of a crawler that calls very many hosts. The oldest delay is deleted, and read again if needed. */
const HOSTS_MAX = 4096;

/**
 * The Crawl-delays of hosts, as limits: one request within the delay, over the roles landing and artifact together. A
 * delay is a total above the budgets of the policy, so it can only tighten them.
 */
export class CrawlDelays {
  readonly #totals = new Map<string, TotalBudget>();

  /** @returns the delay in force in seconds, or undefined when the host had this delay already. */
  set(host: string, delayS: number): number | undefined {
    const seconds = Math.min(delayS, CRAWL_DELAY_S_MAX);
    const rates = [{ limit: 1, windowUs: Math.round(seconds * 1e6) }];
    if (this.#totals.get(host)?.policy.rates[0]?.windowUs === rates[0]?.windowUs) return undefined;
    for (const oldest of this.#totals.keys()) {
      if (this.#totals.size < HOSTS_MAX) break;
      this.#totals.delete(oldest);
    }
    // Of the requests to the host, only those for robots.txt are sent earlier.
    this.#totals.set(host, { name: host, policy: budgetPolicy({ rates }), isKnownFirst: true });
    return seconds;
  }

  /** The limits of a policy, with the delays above them. Delays that are set later apply after the next reload. */
  applyTo(limits: LimitPolicies): LimitPolicies {
    const totals = new Map(this.#totals);
    const delayed = (route: Route, role: Role): Route => {
      const host = commonName(route.name);
      const total = role === "metadata" || isServiceName(host) ? undefined : totals.get(host);
      return total === undefined || route.above.length > 0 ? route : { ...route, above: [total] };
    };
    return {
      aimd: limits.aimd,
      maxInFlight: limits.maxInFlight,
      route: (host, role, ...request) => delayed(limits.route(host, role, ...request), role),
      serviceRoute: (...request) => limits.serviceRoute(...request),
      hasPaths: host => limits.hasPaths(host),
      placesOf: (name, role) => limits.placesOf(name, role),
      namedPlaces: () => limits.namedPlaces(),
      isNamed: host => totals.has(host) || limits.isNamed(host),
      routeByName: (name, role) => {
        const route = limits.routeByName(name, role);
        return route && delayed(route, role);
      },
    };
  }
}
