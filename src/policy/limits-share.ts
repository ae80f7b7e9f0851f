import { formatRates, type Rate } from "../core/limits/rate.ts";
import { type BudgetPolicy, costPolicy, guardedWindows } from "./budget-policy.ts";
import type { LimitPolicies, Route } from "./limit-policies.ts";

/**
 * The limits of one process out of several that cannot reach their store: each rate is divided by the number of
 * processes (law S4). A rate below that number gets a longer window instead, because a window allows at least one call.
 */
export function shareOf(limits: LimitPolicies, processes: number): LimitPolicies {
  if (processes <= 1) return limits;
  const shares = new WeakMap<BudgetPolicy, BudgetPolicy>();
  const share = <Policy extends BudgetPolicy>(policy: Policy): Policy => {
    const divided = shares.get(policy) ?? dividedPolicy(policy, processes);
    shares.set(policy, divided);
    return divided as Policy;
  };
  const sharedRoute = ({ name, roleBudget, above }: Route): Route => ({
    name,
    roleBudget: share(roleBudget),
    above: above.map(budget => ({ name: budget.name, policy: share(budget.policy) })),
  });
  return {
    aimd: limits.aimd,
    maxInFlight: limits.maxInFlight,
    route: (host, role, path) => sharedRoute(limits.route(host, role, path)),
    serviceRoute: (service, host, role, path) => {
      const route = limits.serviceRoute(service, host, role, path);
      return route && sharedRoute(route);
    },
    hasPaths: host => limits.hasPaths(host),
    placesOf: name => limits.placesOf(name),
    routeByName: (name, role) => {
      const route = limits.routeByName(name, role);
      return route && sharedRoute(route);
    },
  };
}

function dividedPolicy<Policy extends BudgetPolicy>(policy: Policy, processes: number): Policy {
  const rates = dividedRates(policy.rates, processes);
  const note = ` (share of one of ${processes} processes)`;
  return Object.freeze({
    ...policy,
    rates,
    spacingUs: policy.spacingUs * processes,
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
