import type { Budget, RoleBudget } from "./budget.ts";
import type { EntryRequest } from "./entry-request.ts";

/** How many units of each window a request uses: its weight, or 0 for a HEAD where HEAD is not counted (law L7). */
export function unitsOf({ method, weight = 1 }: EntryRequest, roleBudget: RoleBudget): number {
  if (method !== undefined && !roleBudget.policy.countsHead && method.toUpperCase() === "HEAD") return 0;
  if (weight !== 1) checkWeight(weight, roleBudget);
  return weight;
}

/** A weight that no window could ever grant is the caller's mistake, not an endless wait (law L6). */
export function checkWeight(weight: number, roleBudget: RoleBudget): void {
  if (!Number.isSafeInteger(weight) || weight < 1)
    throw new RangeError(`weight must be a whole number from 1, not ${weight}`);
  const error = impossibleWeight(weight, roleBudget);
  if (error !== undefined) throw error;
}

/** What is wrong with a weight that some window on the way can never grant. */
export function impossibleWeight(weight: number, roleBudget: RoleBudget): RangeError | undefined {
  for (let at: Budget | undefined = roleBudget; at; at = at.above) {
    for (const [index, { limit }] of at.windows.entries()) {
      if (weight > limit)
        return new RangeError(`weight ${weight} can never pass ${at.policy.labels[index]} of ${at.name}`);
    }
  }
  return undefined;
}
