import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { bindingRates } from "../policy/rate-order.ts";
import type { Role } from "../policy/roles.ts";
import { isServiceName, withoutTier } from "../policy/service-name.ts";
import { replacedPolicy, tightenedPolicy } from "./tightened-policy.ts";

/** A host or service, and a role, whose rates an operator has changed. */
export interface OrderedKey {
  readonly name: string;
  readonly role: Role;
}

/**
 * The orders of operators that change the rates of a host or service in one role. An order without force can only
 * tighten the policy, whatever the policy of this process is. There are as many as operators have given and have not ended.
 */
export class OrderedLimits {
  readonly #orders = new Map<string, OrderedKey & { readonly limit: OrderedLimit }>();

  /** The newest order replaces the one before, or ends it. */
  set(name: string, role: Role, limit: OrderedLimit): void {
    const key = keyOf(name, role);
    if (limit.untilUs === 0) this.#orders.delete(key);
    else this.#orders.set(key, { name, role, limit });
  }

  /** When the next order ends; undefined if there is none. */
  get nextEndUs(): number | undefined {
    if (this.#orders.size === 0) return undefined;
    return Math.min(...Array.from(this.#orders.values(), ({ limit }) => limit.untilUs));
  }

  /** Removes the orders whose time is over. */
  removeEnded(nowUs: number): readonly OrderedKey[] {
    const ended = [...this.#orders.values()].filter(({ limit }) => limit.untilUs <= nowUs);
    for (const { name, role } of ended) this.#orders.delete(keyOf(name, role));
    return ended;
  }

  /** The limits of a policy with these orders. Orders that are given later need another call. */
  applyTo(limits: LimitPolicies): LimitPolicies {
    if (this.#orders.size === 0) return limits;
    const byBudget = Map.groupBy(this.#orders.values(), ({ name, role }) =>
      keyOf(budgetName(limits, name, role), role),
    );
    const changed = new WeakMap<RoleBudgetPolicy, Map<string, RoleBudgetPolicy>>();
    const ordered = (route: Route, role: Role): Route => {
      const names = namesOf(limits, route.name, role);
      const orders = names.flatMap(name => byBudget.get(keyOf(name, role)) ?? []).map(({ limit }) => limit);
      if (orders.length === 0) return route;
      // One policy for all partitions and tiers: a share of it is made once.
      const known = changed.get(route.roleBudget) ?? new Map<string, RoleBudgetPolicy>();
      changed.set(route.roleBudget, known);
      const policy = known.get(names.join()) ?? orderedPolicy(route.roleBudget, orders);
      known.set(names.join(), policy);
      return { ...route, roleBudget: policy };
    };
    return {
      aimd: limits.aimd,
      maxInFlight: limits.maxInFlight,
      route: (host, role, path) => ordered(limits.route(host, role, path), role),
      serviceRoute: (service, host, role, path) => {
        const route = limits.serviceRoute(service, host, role, path);
        return route && ordered(route, role);
      },
      hasPaths: host => limits.hasPaths(host),
      placesOf: name => limits.placesOf(name),
      routeByName: (name, role) => {
        const route = limits.routeByName(name, role);
        return route && ordered(route, role);
      },
    };
  }
}

/** Whether orders for this key can change the rates of the budget with that name. Cheap, because there may be very many budgets. */
export function mayConcern(limits: LimitPolicies, { name, role }: OrderedKey): (budget: string) => boolean {
  const target = budgetName(limits, name, role);
  return budget => {
    const common = withoutTier(commonName(budget));
    return common === target || (isServiceName(common) && common.includes(":"));
  };
}

/** Whether two policies have the same orders. */
export function hasSameOrders(a: RoleBudgetPolicy, b: RoleBudgetPolicy): boolean {
  const [ours, theirs] = [a.ordered?.orders ?? [], b.ordered?.orders ?? []];
  return ours.length === theirs.length && ours.every((order, index) => order === theirs[index]);
}

/** Forced orders replace the rates; the others tighten them. */
function orderedPolicy(base: RoleBudgetPolicy, orders: readonly OrderedLimit[]): RoleBudgetPolicy {
  const forced = orders.filter(({ isForced }) => isForced).flatMap(({ rates }) => rates);
  const others = orders.filter(({ isForced }) => !isForced).flatMap(({ rates }) => rates);
  const replaced = forced.length === 0 ? base : replacedPolicy(base, bindingRates(forced));
  return Object.freeze({ ...tightenedPolicy(replaced, others), ordered: { orders, base } });
}

/** The budget that counts the requests to a host: its own, or that of its service. */
function budgetName(limits: LimitPolicies, name: string, role: Role): string {
  return isServiceName(name) ? name : withoutTier(limits.route(name, role).name);
}

/**
 * The names whose orders apply to a budget: its own without tier and partition. A service with `per_host` has budgets
 * `service <name>:<host>`, which keep the limits of both.
 */
function namesOf(limits: LimitPolicies, name: string, role: Role): readonly string[] {
  const common = withoutTier(commonName(name));
  const colon = isServiceName(common) ? common.indexOf(":") : -1;
  if (colon < 0) return [common];
  const [host = "", ...path] = common.slice(colon + 1).split("/");
  const ofHost = limits.route(host, role, path.length === 0 ? undefined : `/${path.join("/")}`).name;
  return [common.slice(0, colon), withoutTier(ofHost)];
}

function keyOf(name: string, role: Role): string {
  return `${role} ${name}`;
}
