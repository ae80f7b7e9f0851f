/**
 * When a request could start, and which limit decides (law L4). The same estimate serves admission, refusals, snapshots
 * and `why`. Slots of the request's own budgets are ignored: the time of a release is unknown.
 */
import type { Constraint } from "../errors.ts";
import { type Budget, freeUs } from "./budget.ts";
import type { ForecastStart } from "./forecast.ts";
import type { RoleBudget } from "./role-budget.ts";
import type { Scheduler } from "./scheduler.ts";

/** When a request that arrives now could start, behind the queues, and which limit would delay it. */
export interface WaitEstimate {
  readonly readyUs: number;
  readonly constraint: Constraint;
}

/** For a request that cannot start now. */
export function estimateOf(
  root: Budget,
  scheduler: Scheduler,
  roleBudget: RoleBudget,
  units: number,
  nowUs: number,
): WaitEstimate {
  // Nearly every refusal ends here: without a queue the budgets alone decide.
  if (scheduler.isIdle(roleBudget)) {
    const readyUs = freeUs(roleBudget, units, nowUs);
    return { readyUs, constraint: constraintOf(root, roleBudget, units, nowUs) };
  }
  return estimateFrom(root, roleBudget, units, scheduler.startOf(roleBudget, units, nowUs), nowUs);
}

/** The estimate that a forecast gives. */
export function estimateFrom(
  root: Budget,
  roleBudget: RoleBudget,
  units: number,
  { startUs, constraint }: ForecastStart,
  nowUs: number,
): WaitEstimate {
  const readyUs = Math.max(nowUs, startUs);
  if (readyUs > nowUs && constraint !== undefined) return { readyUs, constraint };
  return { readyUs, constraint: constraintOf(root, roleBudget, units, nowUs) };
}

/** The limit with the latest start for `units`. If all have capacity: a missing slot, or the turn at the widest budget. */
function constraintOf(root: Budget, roleBudget: RoleBudget, units: number, nowUs: number): Constraint {
  let binding: Budget = roleBudget;
  let bindingUs = roleBudget.earliestUs(units, nowUs);
  let widest: Budget = roleBudget;
  for (let at = roleBudget.above; at; at = at.above) {
    widest = at;
    const atUs = at.earliestUs(units, nowUs);
    if (atUs <= bindingUs) continue;
    binding = at;
    bindingUs = atUs;
  }
  if (bindingUs > nowUs) return binding.constraint(units, nowUs);
  for (let at: Budget | undefined = roleBudget; at; at = at.above)
    if (!at.hasSlot) return at.slotConstraint("max_concurrent");
  return root.hasSlot ? widest.constraint(units, nowUs) : root.slotConstraint("max_inflight");
}
