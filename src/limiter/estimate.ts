/** Estimates of when a request could start. Slots are ignored: the time of a release is unknown. */
import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { RoleBudget } from "./role-budget.ts";
import type { Scheduler } from "./scheduler.ts";
import type { WaitQueue } from "./wait-queue.ts";
import type { Waiter } from "./waiter.ts";

/** When a request that arrives now could start, behind the queue, and which limit would delay it. */
export interface WaitEstimate {
  readonly readyUs: number;
  /** Undefined if it could start now. */
  readonly constraint: Constraint | undefined;
}

/**
 * The earliest start of a new request behind the queue (law L4). Exact for its role budget, a lower bound for the
 * budgets above it. Stale estimates of the queue are computed again only if the request has a bound to compare with.
 */
export function estimatedUs(
  scheduler: Scheduler,
  roleBudget: RoleBudget,
  units: number,
  boundMs: number,
  nowUs: number,
): number {
  // Nearly every refusal ends here: with an empty queue the budgets alone decide.
  if (scheduler.waiting === 0) return freeUs(roleBudget, units, nowUs);
  const queue = scheduler.queueOf(roleBudget);
  if (queue !== undefined && isStale(scheduler, roleBudget, queue)) {
    if (boundMs === Number.POSITIVE_INFINITY) {
      queue.isStale = true;
      return Math.max(nowUs, queue.last?.estimatedUs ?? 0);
    }
    queue.reestimate(waiter => estimateOneUs(scheduler, roleBudget, waiter.units, nowUs));
  }
  if (queue !== undefined) queue.epoch = scheduler.epoch;
  return estimateOneUs(scheduler, roleBudget, units, nowUs);
}

/**
 * When a new request of one unit could start, and which limit would delay it. Queued requests are not estimated again,
 * so the cost does not grow with the queue.
 */
export function estimateNew(root: Budget, scheduler: Scheduler, roleBudget: RoleBudget, nowUs: number): WaitEstimate {
  const readyUs = estimatedUs(scheduler, roleBudget, 1, Number.POSITIVE_INFINITY, nowUs);
  const isFree = root.hasSlot && roleBudget.hasCapacity(1, nowUs) && !scheduler.isContended(roleBudget);
  if (readyUs <= nowUs && isFree) return { readyUs: nowUs, constraint: undefined };
  const wanted = unitsWanted(scheduler, roleBudget, 1);
  return { readyUs, constraint: constraintOf(root, roleBudget, wanted, readyUs, nowUs) };
}

/** Units for which the windows need capacity before a new request can start: its own and those queued before it. */
export function unitsWanted(scheduler: Scheduler, roleBudget: RoleBudget, units: number): number {
  return units === 0 ? 0 : units + (scheduler.queueOf(roleBudget)?.units ?? 0);
}

/** Other role budgets matter only where a budget is shared with them. */
function isStale(scheduler: Scheduler, roleBudget: RoleBudget, queue: WaitQueue): boolean {
  return queue.isStale || (roleBudget.above !== undefined && queue.epoch !== scheduler.epoch);
}

function estimateOneUs(scheduler: Scheduler, roleBudget: RoleBudget, units: number, nowUs: number): number {
  const queue = scheduler.queueOf(roleBudget);
  const ahead = queue?.units ?? 0;
  const lastUs = queue?.last?.estimatedUs;
  let atUs = Math.max(nowUs, roleBudget.holdUntilUs, lastUs ?? 0);
  if (units > 0) {
    const { log, windows, spacingUs } = roleBudget;
    const known = log.written + log.pending;
    for (const [index, window] of windows.entries()) {
      const unit = known + ahead + units - window.limit;
      if (unit <= 0) continue;
      const stampUs =
        unit <= known ? log.stampUs(index, window, unit, nowUs) : (queue?.estimatedUs(unit - known) ?? nowUs);
      atUs = Math.max(atUs, stampUs + window.spanUs);
    }
    atUs = Math.max(atUs, lastUs === undefined ? log.earliestUs([], spacingUs, units, nowUs) : lastUs + spacingUs);
  }
  for (let at = roleBudget.above; at; at = at.above) {
    const aheadThere = units === 0 ? 0 : scheduler.unitsAhead(at, roleBudget, ahead, nowUs);
    atUs = Math.max(atUs, units === 0 ? at.holdUntilUs : at.estimateUs(aheadThere, units, nowUs));
  }
  return atUs;
}

/** When a queued request whose estimate has passed could start: it is as late as the first of its queue. */
export function overdueUs(scheduler: Scheduler, waiter: Waiter, nowUs: number): number {
  const first = scheduler.queueOf(waiter.roleBudget)?.first ?? waiter;
  return waiter.estimatedUs + (freeUs(first.roleBudget, first.units, nowUs) - first.estimatedUs);
}

/** When every budget that applies has capacity for `units`. */
export function freeUs(roleBudget: RoleBudget, units: number, nowUs: number): number {
  let us = nowUs;
  for (let at: Budget | undefined = roleBudget; at; at = at.above) us = Math.max(us, at.earliestUs(units, nowUs));
  return us;
}

/**
 * The limit that delays the last of `wanted` units until `untilUs`: that of the budget with the latest start, or a
 * missing slot.
 */
export function constraintOf(
  root: Budget,
  roleBudget: RoleBudget,
  wanted: number,
  untilUs: number,
  nowUs: number,
): Constraint {
  if (untilUs <= nowUs) {
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      if (!at.hasSlot) return at.slotConstraint("max_concurrent");
    }
    if (!root.hasSlot) return root.slotConstraint("max_inflight");
  }
  let binding: Budget = roleBudget;
  let bindingUs = roleBudget.earliestUs(wanted, nowUs);
  let widest: Budget = roleBudget;
  for (let at = roleBudget.above; at; at = at.above) {
    widest = at;
    const atUs = at.earliestUs(wanted, nowUs);
    if (atUs <= bindingUs) continue;
    binding = at;
    bindingUs = atUs;
  }
  // Every budget has capacity, so another request has the turn, at the widest budget that both share.
  return (bindingUs > nowUs ? binding : widest).constraint(wanted, nowUs);
}
