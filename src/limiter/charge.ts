import { MAX_COST_LIMIT } from "../core/limits/rate.ts";
import { nearest } from "../core/text/nearest.ts";

/** Amounts by unit: `credits` -> 10. */
export type Costs = ReadonlyMap<string, number>;

/** What one request uses of its budgets. */
export interface Charge {
  /** Units of every rate: the weight of the request, or 0 for one that no window counts (law L7). */
  readonly units: number;
  /** What it uses of other units, one amount for each unit that its budgets count; undefined if they count none. */
  readonly costs: Costs | undefined;
}

export const NO_COSTS: Costs = new Map();
const NO_AMOUNTS: Readonly<Record<string, number>> = Object.freeze({});
/** A request that no window counts. */
export const NO_CHARGE: Charge = Object.freeze({ units: 0, costs: undefined });
/** A request of weight 1, shared because nearly every request is one. */
export const ONE_UNIT: Charge = Object.freeze({ units: 1, costs: undefined });

export function chargeOf(units: number, costs?: Costs): Charge {
  return units === 1 && costs === undefined ? ONE_UNIT : { units, costs };
}

export function isSameCharge(one: Charge, other: Charge): boolean {
  if (one.units !== other.units || one.costs?.size !== other.costs?.size) return false;
  for (const [unit, amount] of one.costs ?? []) if (other.costs?.get(unit) !== amount) return false;
  return true;
}

/**
 * The amount of each counted unit: the caller's, else the policy's `call_costs`, else 1. Throws a RangeError for an
 * invalid amount, and for a unit that is not counted, because its name is probably mistyped. If no unit is limited, costs
 * have no effect, as a weight has none without rates, and any name is accepted.
 * @param counted the units that the budget of the key counts, also those that only an earlier policy limited
 * @param limited the units that a limit of the key counts now; empty in shadow mode, where no request is refused
 * @param given the costs that the caller names
 * @param keyText the key, for messages
 */
export function costsOf(
  counted: readonly string[],
  limited: readonly string[],
  given: Readonly<Record<string, number>>,
  callCosts: Readonly<Record<string, number>>,
  keyText: string,
): Costs | undefined {
  for (const [unit, amount] of Object.entries(given)) {
    checkAmount(unit, amount);
    if (limited.length > 0 && !counted.includes(unit)) throw unknownUnit(unit, limited, keyText);
  }
  if (counted.length === 0) return undefined;
  return new Map(counted.map(unit => [unit, amountOf(given, unit) ?? amountOf(callCosts, unit) ?? 1]));
}

/** The costs of a caller; none if it names none. Throws a TypeError for a list, a Map and whatever is no object. */
export function checkedCosts(costs: Readonly<Record<string, number>> | undefined): Readonly<Record<string, number>> {
  if (costs === undefined) return NO_AMOUNTS;
  if (typeof costs === "object" && costs !== null && !(Symbol.iterator in costs)) return costs;
  throw new TypeError(`costs must be an object such as { credits: 10 }, not ${kindOf(costs)}`);
}

function kindOf(value: unknown): string {
  if (typeof value !== "object") return JSON.stringify(value);
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a ${value.constructor.name}`;
}

/**
 * What a request really used, for the units that it was charged for. Throws a RangeError as `costsOf` does. An amount
 * above the largest limit fills every window, so it counts as that limit: sums of larger ones would not be exact.
 */
export function actualCosts(charged: Costs, given: Readonly<Record<string, number>>, keyText: string): Costs {
  const actual = new Map(charged);
  for (const [unit, amount] of Object.entries(given)) {
    checkAmount(unit, amount);
    if (!charged.has(unit)) throw unknownUnit(unit, [...charged.keys()], keyText);
    actual.set(unit, Math.min(amount, MAX_COST_LIMIT));
  }
  return actual;
}

/** What was used beyond the charged amounts. */
export function costsBeyond(charged: Costs, used: Costs): Costs {
  return new Map(Array.from(used, ([unit, amount]) => [unit, Math.max(0, amount - (charged.get(unit) ?? 0))]));
}

/** The larger amount of each unit of `one`. */
export function greaterCosts(one: Costs, other: Costs): Costs {
  return new Map(Array.from(one, ([unit, amount]) => [unit, Math.max(amount, other.get(unit) ?? 0)]));
}

function amountOf(amounts: Readonly<Record<string, number>>, unit: string): number | undefined {
  return Object.hasOwn(amounts, unit) ? amounts[unit] : undefined;
}

/** What is wrong with the amounts of a caller, whose units are not known yet; undefined if nothing is. */
export function amountsProblem(costs: object): string | undefined {
  for (const [unit, amount] of Object.entries(costs)) {
    const problem = amountProblem(unit, amount);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function checkAmount(unit: string, amount: number): void {
  const problem = amountProblem(unit, amount);
  if (problem !== undefined) throw new RangeError(problem);
}

function amountProblem(unit: string, amount: unknown): string | undefined {
  if (Number.isSafeInteger(amount) && Number(amount) >= 0) return undefined;
  return `costs.${unit} must be an integer of at least 0, got ${String(amount)}`;
}

function unknownUnit(unit: string, counted: readonly string[], keyText: string): RangeError {
  const meant = nearest(unit, counted);
  const hint = meant === undefined ? `its limits count ${counted.join(", ")}` : `did you mean ${meant}?`;
  return new RangeError(`costs: no limit of ${keyText} counts ${JSON.stringify(unit)}; ${hint}`);
}
