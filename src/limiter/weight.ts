import type { Budget } from "./budget.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { RoleBudget } from "./role-budget.ts";

/** Units that a request uses of every window: its weight, or 0 for a HEAD that is not counted (law L7). */
export function unitsOf({ method, weight = 1 }: EntryRequest, roleBudget: RoleBudget): number {
  if (method !== undefined && !roleBudget.policy.countsHead && method.toUpperCase() === "HEAD") return 0;
  if (weight !== 1) checkWeight(weight, roleBudget);
  return weight;
}

/** Throws a RangeError for a weight that no window could ever grant, which would wait for ever (law L6). */
export function checkWeight(weight: number, roleBudget: RoleBudget): void {
  if (!Number.isSafeInteger(weight) || weight < 1)
    throw new RangeError(`weight must be an integer of at least 1, got ${weight}`);
  const error = impossibleWeight(weight, roleBudget);
  if (error !== undefined) throw error;
}

/** The error for a weight that is larger than the limit of a window that applies; undefined if there is none. */
export function impossibleWeight(weight: number, roleBudget: RoleBudget): RangeError | undefined {
  for (let at: Budget | undefined = roleBudget; at; at = at.above) {
    for (const [index, { limit }] of at.windows.entries()) {
      if (weight > limit)
        return new RangeError(
          `weight ${weight} is larger than the rate limit ${at.policy.labels[index]} of ${at.name}: no window can grant it`,
        );
    }
  }
  return undefined;
}
