import { formatRates, type Rate } from "../core/limits/rate.ts";
import { type BudgetPolicy, costPolicy, guardedWindows } from "./budget-policy.ts";
import type { LimitPolicies, Route } from "./limit-policies.ts";

/** Ends the text of a limit while the process cannot reach its store. */
export const STORE_AWAY = "while the store is unavailable";

/**
 * The limits of one process out of several that cannot reach their store: each rate is divided by the number of
 * processes (law S4). A rate below that number stays as it is. It has no share of one unit, so its calls wait until the
 * store is back (`Budget.exceedsOwnShare`).
 */
export function shareOf(limits: LimitPolicies, processes: number): LimitPolicies {
  if (processes <= 1) return limits;
  const dividedPolicies = new WeakMap<BudgetPolicy, BudgetPolicy>();
  const divided = <Policy extends BudgetPolicy>(policy: Policy): Policy => {
    const result = dividedPolicies.get(policy) ?? dividedPolicy(policy, processes);
    dividedPolicies.set(policy, result);
    return result as Policy;
  };
  const dividedRoute = ({ name, roleBudget, above }: Route): Route => ({
    name,
    roleBudget: divided(roleBudget),
    above: above.map(budget => ({ name: budget.name, policy: divided(budget.policy) })),
  });
  return {
    aimd: limits.aimd,
    maxInFlight: limits.maxInFlight,
    route: (...request) => dividedRoute(limits.route(...request)),
    serviceRoute: (...request) => {
      const route = limits.serviceRoute(...request);
      return route && dividedRoute(route);
    },
    hasPaths: host => limits.hasPaths(host),
    placesOf: (name, role) => limits.placesOf(name, role),
    namedPlaces: () => limits.namedPlaces(),
    isNamed: host => limits.isNamed(host),
    routeByName: (name, role) => {
      const route = limits.routeByName(name, role);
      return route && dividedRoute(route);
    },
  };
}

/** The share of one process in the limits of a budget. */
export function dividedPolicy<Policy extends BudgetPolicy>(policy: Policy, processes: number): Policy {
  const rates = dividedRates(policy.rates, processes);
  const note = noteOf(policy.rates, processes);
  return Object.freeze({
    ...policy,
    undivided: policy,
    processes,
    rates,
    spacingUs: policy.spacingUs * processes,
    // Each process has at least one slot. If there are more processes than slots, they exceed `max_concurrent` together.
    maxConcurrent: policy.sharesSlots
      ? Math.max(1, Math.floor(policy.maxConcurrent / processes))
      : policy.maxConcurrent,
    windows: guardedWindows(rates, policy.guardUs),
    labels: rates.map(rate => `${formatRates([rate])}${note}`),
    costs: policy.costs.map(cost =>
      costPolicy(cost.unit, dividedRates(cost.rates, processes), policy.guardUs, noteOf(cost.rates, processes)),
    ),
  });
}

function noteOf(rates: readonly Rate[], processes: number): string {
  if (rates.every(({ limit }) => limit >= processes)) return ` (1/${processes} of the limit ${STORE_AWAY})`;
  return ` (for ${processes} processes: calls wait ${STORE_AWAY})`;
}

function dividedRates(rates: readonly Rate[], processes: number): readonly Rate[] {
  return rates.map(rate => (rate.limit >= processes ? { ...rate, limit: Math.floor(rate.limit / processes) } : rate));
}
