import { formatRates, type Rate } from "../core/limits/rate.ts";
import { type BudgetPolicy, costPolicy, guardedWindows } from "./budget-policy.ts";
import type { LimitPolicies, Route } from "./limit-policies.ts";

/** Ends the text of a limit while the process cannot reach its store. */
export const STORE_AWAY = "while the store is unavailable";

/**
 * The limits of one process out of several that cannot reach their store: each rate is divided by the number of
 * processes (law S4). A rate below that number gets a longer window instead, because a window allows at least one call.
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
    route: (host, role, path) => dividedRoute(limits.route(host, role, path)),
    serviceRoute: (service, host, role, path) => {
      const route = limits.serviceRoute(service, host, role, path);
      return route && dividedRoute(route);
    },
    hasPaths: host => limits.hasPaths(host),
    placesOf: name => limits.placesOf(name),
    routeByName: (name, role) => {
      const route = limits.routeByName(name, role);
      return route && dividedRoute(route);
    },
  };
}

function dividedPolicy<Policy extends BudgetPolicy>(policy: Policy, processes: number): Policy {
  const rates = dividedRates(policy.rates, processes);
  const note = ` (1/${processes} of the limit ${STORE_AWAY})`;
  return Object.freeze({
    ...policy,
    undivided: policy,
    rates,
    spacingUs: policy.spacingUs * processes,
    // At least one slot for each process, so more processes than slots exceed `max_concurrent` together.
    maxConcurrent: policy.sharesSlots
      ? Math.max(1, Math.floor(policy.maxConcurrent / processes))
      : policy.maxConcurrent,
    windows: guardedWindows(rates, policy.guardUs),
    labels: rates.map(rate => `${formatRates([rate])}${note}`),
    costs: policy.costs.map(cost => costPolicy(cost.unit, dividedRates(cost.rates, processes), policy.guardUs, note)),
  });
}

function dividedRates(rates: readonly Rate[], processes: number): readonly Rate[] {
  return rates.map(({ limit, windowUs }) =>
    limit >= processes
      ? { limit: Math.floor(limit / processes), windowUs }
      : { limit: 1, windowUs: windowUs * Math.ceil(processes / limit) },
  );
}
