import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import { budgetUnitOf } from "../policy/budget-unit.ts";
import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { type LimitPart, ROLES, type Role } from "../policy/roles.ts";
import { isServiceName, serviceName, withoutTier } from "../policy/service-name.ts";
import { OrderedPolicies } from "./ordered-policies.ts";
import { orderedAbove } from "./ordered-totals.ts";

/** A host or service, and a role or its total, whose limits an operator has changed. */
export interface OrderedKey {
  readonly name: string;
  readonly part: LimitPart;
}

/**
 * The orders of operators that change the limits of a host or service in one role, or its total. An order without force
 * can only tighten the policy, whatever the policy of this process is. The number of entries is not bounded: one for
 * each order that operators have given and not ended.
 */
export class OrderedLimits {
  readonly #orders = new Map<string, OrderedKey & { readonly limit: OrderedLimit }>();

  /** The newest order replaces the one before, or ends it. */
  set(name: string, part: LimitPart, limit: OrderedLimit): void {
    const key = keyOf(name, part);
    if (limit.untilUs === 0) this.#orders.delete(key);
    else this.#orders.set(key, { name, part, limit });
  }

  /** When the next order ends; undefined if there is none. */
  get nextEndUs(): number | undefined {
    if (this.#orders.size === 0) return undefined;
    return Math.min(...Array.from(this.#orders.values(), ({ limit }) => limit.untilUs));
  }

  /** Removes the orders whose time is over. */
  removeEnded(nowUs: number): readonly OrderedKey[] {
    const ended = [...this.#orders.values()].filter(({ limit }) => limit.untilUs <= nowUs);
    for (const { name, part } of ended) this.#orders.delete(keyOf(name, part));
    return ended;
  }

  /** The limits of a policy with these orders. Orders that are given later need another call. */
  applyTo(limits: LimitPolicies): LimitPolicies {
    if (this.#orders.size === 0) return limits;
    const byBudget = Map.groupBy(this.#orders.values(), ({ name, part }) =>
      keyOf(budgetName(limits, name, part), part),
    );
    const ordersOf = (name: string, part: LimitPart) =>
      (byBudget.get(keyOf(name, part)) ?? []).map(({ limit }) => limit);
    const policies = new OrderedPolicies();
    const orderedNames = new Set(Array.from(this.#orders.values(), ({ name }) => commonName(name)));
    const hasTotals = [...this.#orders.values()].some(({ part }) => part === "total");
    const ordered = (route: Route, role: Role): Route => {
      const owners = ownersOf(limits, route.name, role);
      const orders = owners.flatMap(name => ordersOf(name, role));
      const roleBudget = policies.of(route.roleBudget, orders, owners.join());
      if (!hasTotals) return orders.length === 0 ? route : { ...route, roleBudget };
      return {
        ...route,
        roleBudget,
        above: orderedAbove(route, owners, name => ordersOf(name, "total"), policies),
      };
    };
    return {
      aimd: limits.aimd,
      maxInFlight: limits.maxInFlight,
      route: (host, role, ...request) => ordered(limits.route(host, role, ...request), role),
      serviceRoute: (service, host, role, ...request) => {
        const route = limits.serviceRoute(service, host, role, ...request);
        return route && ordered(route, role);
      },
      hasPaths: host => limits.hasPaths(host),
      placesOf: (name, role) => limits.placesOf(name, role),
      namedPlaces: () => limits.namedPlaces(),
      isNamed: host => orderedNames.has(host) || limits.isNamed(host),
      routeByName: (name, role) => {
        const route = limits.routeByName(name, role);
        return route && ordered(route, role);
      },
    };
  }
}

/**
 * Whether an order for the host or service `name` in this role can change the limits of a budget. The returned function
 * takes the name of the budget. It must be cheap, because there may be very many budgets.
 */
export function mayConcern(limits: LimitPolicies, name: string, role: Role): (budget: string) => boolean {
  const target = budgetName(limits, name, role);
  return budget => {
    const common = withoutTier(commonName(budget));
    return common === target || (isServiceName(common) && common.includes(":"));
  };
}

/** Whether two policies have the same orders. */
export function hasSameOrders(a: BudgetPolicy, b: BudgetPolicy): boolean {
  const [ours, theirs] = [a.ordered?.orders ?? [], b.ordered?.orders ?? []];
  return ours.length === theirs.length && ours.every((order, index) => order === theirs[index]);
}

/**
 * The budget that counts the requests to a host: its own, or that of its service. An order for the key of a partition
 * concerns all partitions. Throws a RangeError for an invalid host.
 */
export function budgetName(limits: LimitPolicies, key: string, part: LimitPart): string {
  const name = commonName(key);
  if (isServiceName(name)) return name;
  if (part !== "total") return withoutTier(limits.route(name, part).name);
  const owners = ROLES.map(role => withoutTier(limits.route(name, role).name));
  return owners.includes(name) ? name : (owners[0] ?? name);
}

/**
 * The names whose orders apply to a budget: its own without tier and partition. A service with `per_host` has budgets
 * `service <name>:<host>`, which keep the limits of both.
 */
function ownersOf(limits: LimitPolicies, name: string, role: Role): readonly string[] {
  const { service, host, path } = budgetUnitOf(name);
  if (service === undefined || host === undefined) return [withoutTier(commonName(name))];
  return [serviceName(service), withoutTier(limits.route(host, role, path).name)];
}

function keyOf(name: string, part: LimitPart): string {
  return `${part} ${name}`;
}
