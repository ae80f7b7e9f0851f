import { evenSpacingUs } from "../core/limits/guard.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { formatRates, type Rate } from "../core/limits/rate.ts";
import { makeWindow, type Window } from "../core/limits/window-log.ts";
import { DEFAULT_GUARD_MS } from "./defaults.ts";
import { bindingRates } from "./rate-order.ts";
import type { ParsedBudgetLimits, ParsedRoleLimits } from "./ratelimit-schema.ts";

/** The limits of one unit other than requests, such as credits. */
export interface CostPolicy {
  readonly unit: string;
  readonly rates: readonly Rate[];
  /** The rates with their guard. */
  readonly windows: readonly Window[];
  /** The rates as text: `credits 100000/DAY`. */
  readonly labels: readonly string[];
}

/** The limits of one budget, complete and frozen. */
export interface BudgetPolicy {
  /** The policy that this one is a share of, while the store is away or has just come back. */
  readonly undivided?: BudgetPolicy | undefined;
  /** The number of processes that share the limits of `undivided`. */
  readonly processes?: number | undefined;
  readonly rates: readonly Rate[];
  readonly guardUs: number;
  /** Shortest distance between two sends of a budget with `shape: smooth`; 0 for bursts. */
  readonly spacingUs: number;
  /** The rates with their guard, as the window log enforces them. */
  readonly windows: readonly Window[];
  /** The rates as text (`10/SECOND`), made once because every refusal quotes them. */
  readonly labels: readonly string[];
  /** Limits of other units than requests; in most policies there are none. */
  readonly costs: readonly CostPolicy[];
  /** Infinity for no cap. */
  readonly maxConcurrent: number;
  /** Whether the cap counts over all processes that share a store. */
  readonly sharesSlots: boolean;
  /** Whether the pace adapts to throttled responses (AIMD). @default as the policy says for every host */
  readonly isAdaptive?: boolean | undefined;
  /** Undefined if no operator has changed the limits. */
  readonly ordered?: PolicyOrders | undefined;
}

/** The budget of one role, and how its calls are treated. */
export interface RoleBudgetPolicy extends BudgetPolicy {
  readonly maxDelayMs: number;
  readonly countsHead: boolean;
  /** Each partition has a budget of its own with these limits. */
  readonly isPerPartition: boolean;
  /** Requests to the same host may have another budget, by the keys that they carry. */
  readonly hasTiers: boolean;
  /** Calls that would wait or be refused are reported and sent. */
  readonly isShadow: boolean;
  /** What a call uses of a unit if it does not say so itself. @default 1 of each unit */
  readonly callCosts: Readonly<Record<string, number>>;
  /** The response headers that say what a call really used, by unit. */
  readonly costHeaders: Readonly<Record<string, string>>;
}

/** The orders of operators that have changed the limits of a budget. */
export interface PolicyOrders {
  readonly orders: readonly OrderedLimit[];
  /** The policy without them. */
  readonly base: BudgetPolicy;
}

export const UNLIMITED: BudgetPolicy = freezeBudget({}, { rates: [], costs: {}, guardUs: 0 });

/** The policy of a role's budget, from options that already contain what they inherit. */
export function roleBudgetPolicy(options: ParsedRoleLimits, isAdaptive = false, hasTiers = false): RoleBudgetPolicy {
  const { max_delay_ms = 0, count_head = true, per, mode, call_costs = {}, cost_headers = {} } = options;
  return Object.freeze({
    ...budgetPolicy(options),
    maxDelayMs: max_delay_ms,
    countsHead: count_head,
    isPerPartition: per === "partition",
    hasTiers,
    isShadow: mode === "shadow",
    isAdaptive,
    callCosts: call_costs,
    costHeaders: cost_headers,
  });
}

/** A budget that keeps the rates and caps of both. Its `maxDelayMs` is that of the first. */
export function strictestPolicy(first: RoleBudgetPolicy, second: RoleBudgetPolicy): RoleBudgetPolicy {
  const rates = bindingRates([...first.rates, ...second.rates]);
  const guardUs = Math.max(first.guardUs, second.guardUs);
  const costs = Object.fromEntries(
    [...first.costs, ...second.costs].map(({ unit }) => [
      unit,
      bindingRates([...ratesOf(first, unit), ...ratesOf(second, unit)]),
    ]),
  );
  // With the lower cap per process, several processes together could exceed a higher cap that they share.
  const caps = {
    max_concurrent: Math.min(first.maxConcurrent, second.maxConcurrent),
    shared: first.sharesSlots || second.sharesSlots,
  };
  return Object.freeze({
    ...freezeBudget(caps, { rates, costs, guardUs }),
    spacingUs: Math.max(first.spacingUs, second.spacingUs),
    maxDelayMs: first.maxDelayMs,
    countsHead: first.countsHead || second.countsHead,
    isPerPartition: first.isPerPartition && second.isPerPartition,
    hasTiers: first.hasTiers || second.hasTiers,
    isShadow: first.isShadow && second.isShadow,
    isAdaptive: first.isAdaptive || second.isAdaptive,
    callCosts: { ...second.callCosts, ...first.callCosts },
    costHeaders: { ...second.costHeaders, ...first.costHeaders },
  });
}

function ratesOf({ costs }: BudgetPolicy, unit: string): readonly Rate[] {
  return costs.find(cost => cost.unit === unit)?.rates ?? [];
}

export function budgetPolicy(options: ParsedBudgetLimits): BudgetPolicy {
  const guardUs = Math.round((options.guard_ms ?? DEFAULT_GUARD_MS) * 1000);
  return freezeBudget(options, { rates: options.rates ?? [], costs: options.costs ?? {}, guardUs });
}

function freezeBudget(
  { max_concurrent = Number.POSITIVE_INFINITY, shared = false, shape }: ParsedBudgetLimits,
  { rates, costs, guardUs }: BudgetRates,
): BudgetPolicy {
  const windows = guardedWindows(rates, guardUs);
  const spacingUs = shape === "smooth" ? evenSpacingUs(rates) : 0;
  const labels = rates.map(rate => formatRates([rate]));
  const sharesSlots = shared && Number.isFinite(max_concurrent);
  return Object.freeze({
    rates,
    guardUs,
    spacingUs,
    windows,
    labels,
    costs: Object.entries(costs).flatMap(([unit, limits]) =>
      limits.length === 0 ? [] : [costPolicy(unit, limits, guardUs)],
    ),
    maxConcurrent: max_concurrent,
    sharesSlots,
  });
}

interface BudgetRates {
  readonly rates: readonly Rate[];
  readonly costs: Readonly<Record<string, readonly Rate[]>>;
  readonly guardUs: number;
}

/** `note` is added to every label. */
export function costPolicy(unit: string, rates: readonly Rate[], guardUs: number, note = ""): CostPolicy {
  const labels = rates.map(rate => `${unit} ${formatRates([rate])}${note}`);
  return Object.freeze({ unit, rates, windows: guardedWindows(rates, guardUs), labels });
}

export function guardedWindows(rates: readonly Rate[], guardUs: number): readonly Window[] {
  return rates.map(({ limit, windowUs }) => makeWindow(limit, windowUs + guardUs));
}
