import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import { bindingRates, implies } from "../policy/rate-order.ts";
import { replacedPolicy, tightenedPolicy } from "./tightened-policy.ts";

/**
 * The policies of budgets with the orders of operators. All partitions and tiers of a budget get the same object, so that
 * its share is computed only once.
 */
export class OrderedPolicies {
  readonly #made = new WeakMap<BudgetPolicy, Map<string, BudgetPolicy>>();

  /** @param owners the names of the hosts and services with these orders; the same names always have the same orders */
  of<Policy extends BudgetPolicy>(base: Policy, orders: readonly OrderedLimit[], owners: string): Policy {
    if (orders.length === 0) return base;
    const known = this.#made.get(base) ?? new Map<string, BudgetPolicy>();
    this.#made.set(base, known);
    const policy = known.get(owners) ?? orderedPolicy(base, orders);
    known.set(owners, policy);
    return policy as Policy;
  }
}

/** Forced orders replace the limits that they name; the others tighten them. */
function orderedPolicy<Policy extends BudgetPolicy>(base: Policy, orders: readonly OrderedLimit[]): Policy {
  const forced = orders.filter(({ isForced }) => isForced);
  const others = orders.filter(({ isForced }) => !isForced);
  const forcedRates = forced.flatMap(({ rates }) => rates);
  const replaced = forcedRates.length === 0 ? base : replacedPolicy(base, bindingRates(forcedRates));
  const tightened = tightenedPolicy(
    replaced,
    others.flatMap(({ rates }) => rates),
  );
  const forcedCaps = capsOf(forced);
  const maxConcurrent = Math.min(...(forcedCaps.length === 0 ? [base.maxConcurrent] : forcedCaps), ...capsOf(others));
  return Object.freeze({ ...tightened, maxConcurrent, ordered: { orders, base } });
}

function capsOf(orders: readonly OrderedLimit[]): readonly number[] {
  return orders.flatMap(({ maxConcurrent }) => maxConcurrent ?? []);
}

/** Whether the orders in a policy allow more than the policy without them, in any window or in slots. */
export function isLooserThanBase({ undivided, ...policy }: BudgetPolicy): boolean {
  const { ordered, rates, maxConcurrent } = undivided ?? policy;
  if (ordered === undefined) return false;
  const isFaster = ordered.base.rates.some(rate => !rates.some(each => implies(each, rate)));
  return isFaster || maxConcurrent > ordered.base.maxConcurrent;
}
