import type { BudgetClaim } from "../core/limits/shared-budget.ts";
import type { Budget } from "../limiter/budget.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { StoreClaim } from "../stores/store.ts";

/** Whether any budget that applies has windows. */
export function isLimited(roleBudget: RoleBudget): boolean {
  for (let at: Budget | undefined = roleBudget; at; at = at.above) if (at.windows.length > 0) return true;
  return false;
}

/** Store keys and limits of the budgets that apply. Budgets without windows are not shared. */
export function claimsOf(roleBudget: RoleBudget): readonly StoreClaim[] {
  const claims: StoreClaim[] = [];
  for (let at: Budget | undefined = roleBudget; at; at = at.above)
    if (at.windows.length > 0) claims.push({ key: budgetKey(at), ...claimOf(at) });
  return claims;
}

/** The key of a budget in the store, which processes of all versions must agree on. */
export function budgetKey(budget: Budget): string {
  return "role" in budget ? `lane ${budget.name} ${budget.role}` : `total ${budget.name}`;
}

function claimOf({ windows, policy, spacingUs }: Budget): BudgetClaim {
  return {
    windows: windows.map(({ limit, spanUs }, index) => ({
      limit,
      spanUs,
      windowUs: policy.rates[index]?.windowUs ?? spanUs,
    })),
    spacingUs,
  };
}
