import { budgetUnitOf } from "../policy/budget-unit.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { isExampleOfHosts } from "./moved-places.ts";
import { routeAt } from "./recount.ts";
import { copyOf, type FormerBudget, isKept } from "./sent-history.ts";

/** What a service had sent when a reload removed one of its suffixes. */
interface LeftService {
  readonly sender: FormerBudget;
  readonly before: LimitPolicies;
  /** The budgets of hosts that count it already. */
  readonly countedBy: Set<string>;
}

/** A former budget, and the limits that it had. */
export interface FormerService {
  readonly sender: FormerBudget;
  readonly before: LimitPolicies;
}

/**
 * Hosts that no policy names, and that belonged to a service by a suffix until a reload. Which hosts these are is not
 * known. The budget of such a host counts all units of the service when the host is called for the first time.
 */
export class LeftHosts {
  #left: readonly LeftService[] = [];

  reloaded(senders: Iterable<FormerBudget>, before: LimitPolicies, now: LimitPolicies, nowUs: number): void {
    this.#left = this.#left.filter(({ sender }) => isKept(nowUs)(sender));
    const services = this.#servicesLeft(before, now);
    if (services.size === 0) return;
    for (const sender of senders) {
      const { name, role, log, holdUntilUs = 0 } = sender;
      const countedBy = services.get(`${role} ${commonName(name)}`);
      if (countedBy !== undefined && (log.written > 0 || holdUntilUs > nowUs))
        this.#left = [...this.#left, { sender: copyOf(sender), before, countedBy: new Set(countedBy) }];
    }
  }

  /** The services that the host of a new budget has left; each of them is returned once for each budget. */
  leftBy(name: string, role: Role): readonly FormerService[] {
    if (this.#left.length === 0) return [];
    const left = this.#left.filter(({ sender, before, countedBy }) => {
      return sender.role === role && !countedBy.has(name) && isFormerOf(name, role, sender.name, before);
    });
    for (const { countedBy } of left) countedBy.add(name);
    return left;
  }

  /** By role and name, the services that hosts have left, with the budgets that the reload itself has counted them in. */
  #servicesLeft(before: LimitPolicies, now: LimitPolicies): ReadonlyMap<string, ReadonlySet<string>> {
    const services = new Map<string, Set<string>>();
    for (const role of ROLES) {
      for (const place of before.namedPlaces())
        if (isExampleOfHosts(place, role, now) && !isExampleOfHosts(place, role, before))
          services.set(`${role} ${before.route(place.host, role, place.path).name}`, new Set());
      if (services.size === 0) continue;
      for (const { host, path } of now.namedPlaces())
        services.get(`${role} ${before.route(host, role, path).name}`)?.add(now.route(host, role, path).name);
    }
    return services;
  }
}

/**
 * Whether a budget may have sent requests of a host's budget by earlier limits. That is true for each partition of the
 * service, if the host's budget has none.
 */
export function isFormerOf(name: string, role: Role, sender: string, before: LimitPolicies): boolean {
  const { host, service, tiers } = budgetUnitOf(name);
  if (host === undefined || service !== undefined || tiers.length > 0) return false;
  const { name: former } = routeAt({ host, path: undefined }, role, name.slice(commonName(name).length), before);
  return former === sender || (name === commonName(name) && former === commonName(sender));
}
