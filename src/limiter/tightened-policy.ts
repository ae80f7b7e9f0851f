import { evenSpacingUs } from "../core/limits/guard.ts";
import { formatRates, type Rate } from "../core/limits/rate.ts";
import { makeWindow, type Window } from "../core/limits/window-log.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import type { PacedPolicy } from "./pace.ts";

/** A policy whose rates are tightened by these: of two windows of the same length the smaller limit counts. */
export function tightenedPolicy<Policy extends BudgetPolicy>(
  base: Policy,
  tighter: readonly Rate[],
): Policy & PacedPolicy {
  const own = base.rates.map(rate => {
    const other = tightest(tighter, rate.windowUs);
    return other !== undefined && other.limit < rate.limit ? other : rate;
  });
  const added = tighter.filter(rate => rate === tightest(tighter, rate.windowUs));
  const rates = [...own, ...added.filter(({ windowUs }) => tightest(base.rates, windowUs) === undefined)];
  return policyWithRates(base, rates, tightenedSpacingUs(base.rates, rates));
}

/** A policy with these rates instead of its own. Costs, slots and guard stay. */
export function replacedPolicy<Policy extends BudgetPolicy>(
  base: Policy,
  rates: readonly Rate[],
): Policy & PacedPolicy {
  return policyWithRates(base, rates, evenSpacingUs(rates));
}

function policyWithRates<Policy extends BudgetPolicy>(
  base: Policy,
  rates: readonly Rate[],
  evenUs: number,
): Policy & PacedPolicy {
  const windows = rates.map((rate, index) =>
    rate === base.rates[index] ? (base.windows[index] as Window) : makeWindow(rate.limit, rate.windowUs + base.guardUs),
  );
  const labels = rates.map(rate => formatRates([rate]));
  return Object.freeze({ ...base, rates, windows, labels, evenUs, spacingUs: base.spacingUs > 0 ? evenUs : 0 });
}

export function tightest(rates: readonly Rate[], windowUs: number): Rate | undefined {
  const alike = rates.filter(rate => rate.windowUs === windowUs);
  return alike.length === 0 ? undefined : alike.reduce((least, rate) => (rate.limit < least.limit ? rate : least));
}

/**
 * The spacing of a smooth key, which follows from the shortest window. A shorter window that is added may allow a smaller
 * spacing; then the larger one stays.
 */
function tightenedSpacingUs(base: readonly Rate[], rates: readonly Rate[]): number {
  const shortestUs = Math.min(...(base.length > 0 ? base : rates).map(({ windowUs }) => windowUs));
  const short = rates.filter(({ windowUs }) => windowUs <= shortestUs);
  return Math.max(0, ...short.map(rate => evenSpacingUs([rate])));
}
