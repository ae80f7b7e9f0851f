/**
 * When a request could start, and which limit decides (law L4). The same estimate serves admission, refusals, snapshots
 * and `why`. Slots of the request's own budgets are ignored: the time of a release is unknown.
 */
import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { Charge } from "./charge.ts";
import type { EstimatedStart } from "./queue-estimate.ts";
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
  charge: Charge,
  nowUs: number,
): WaitEstimate {
  // Nearly every refusal ends here: without a queue the budgets alone decide.
  if (scheduler.isIdle(roleBudget)) return idleEstimate(root, roleBudget, charge, nowUs);
  return estimateFrom(root, roleBudget, charge, scheduler.estimates.startOf(roleBudget, charge, nowUs), nowUs);
}

/** For each of these role budgets: a usual request that cannot start now, as if it were the only new one. */
export function estimatesOf(
  root: Budget,
  scheduler: Scheduler,
  roleBudgets: readonly RoleBudget[],
  nowUs: number,
): ReadonlyMap<RoleBudget, WaitEstimate> {
  const queued = roleBudgets.filter(roleBudget => !scheduler.isIdle(roleBudget));
  const starts = scheduler.estimates.startsOf(queued, nowUs);
  const estimateFor = (roleBudget: RoleBudget) => {
    const start = starts.get(roleBudget);
    const { usualCharge } = roleBudget;
    if (start === undefined) return idleEstimate(root, roleBudget, usualCharge, nowUs);
    return estimateFrom(root, roleBudget, usualCharge, start, nowUs);
  };
  return new Map(roleBudgets.map(roleBudget => [roleBudget, estimateFor(roleBudget)]));
}

function idleEstimate(root: Budget, roleBudget: RoleBudget, charge: Charge, nowUs: number): WaitEstimate {
  const readyUs = roleBudget.freeUs(charge, nowUs);
  return { readyUs, constraint: constraintOf(root, roleBudget, charge, nowUs) };
}

/** From the start that a `QueueEstimate` gives. */
export function estimateFrom(
  root: Budget,
  roleBudget: RoleBudget,
  charge: Charge,
  { startUs, constraint }: EstimatedStart,
  nowUs: number,
): WaitEstimate {
  const readyUs = Math.max(nowUs, startUs);
  return { readyUs, constraint: constraint ?? constraintOf(root, roleBudget, charge, nowUs) };
}

/** The limit with the latest start for the request. If all have capacity: a missing slot, or the turn at the widest budget. */
function constraintOf(root: Budget, roleBudget: RoleBudget, charge: Charge, nowUs: number): Constraint {
  let binding: Budget = roleBudget;
  let bindingUs = roleBudget.earliestUs(charge, nowUs);
  let widest: Budget = roleBudget;
  for (let at = roleBudget.above; at; at = at.above) {
    widest = at;
    const atUs = roleBudget.freeAtUs(at, charge, nowUs);
    if (atUs <= bindingUs) continue;
    binding = at;
    bindingUs = atUs;
  }
  if (bindingUs > nowUs) return binding.constraint(charge, nowUs);
  for (let at: Budget | undefined = roleBudget; at; at = at.above)
    if (!at.hasSlot) return at.slotConstraint("max_concurrent");
  return root.hasSlot ? widest.constraint(charge, nowUs) : root.slotConstraint("max_inflight");
}
