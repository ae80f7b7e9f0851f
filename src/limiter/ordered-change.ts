import { type BudgetPolicy, UNLIMITED } from "../policy/budget-policy.ts";
import type { LimitPart } from "../policy/roles.ts";
import { hasSameOrders } from "./ordered-limits.ts";
import type { RoleBudget } from "./role-budget.ts";

/** A role budget or total for which the orders of operators (`ordered-limits.ts`) have changed. */
export interface OrderedChange {
  readonly name: string;
  readonly part: LimitPart;
  readonly old: BudgetPolicy;
  readonly now: BudgetPolicy;
  /** Undefined for a total. */
  readonly roleBudget: RoleBudget | undefined;
}

/** The totals whose orders differ. A total that only an order creates is unlimited before and after the order. */
export function changedTotals(
  before: ReadonlyMap<string, BudgetPolicy>,
  after: ReadonlyMap<string, BudgetPolicy>,
): readonly OrderedChange[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap(name => {
    const [old, now] = [before.get(name) ?? UNLIMITED, after.get(name) ?? UNLIMITED];
    return hasSameOrders(old, now) ? [] : [{ name, part: "total", old, now, roleBudget: undefined } as const];
  });
}
