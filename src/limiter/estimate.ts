/** When somebody could go, as far as anybody can tell. Slots are left out: nobody knows when one is freed. */
import type { Constraint } from "../errors.ts";
import type { Budget, RoleBudget } from "./budget.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Waiter, WaitQueue } from "./wait-queue.ts";

/** When one that came now could go, behind those who wait, and what would keep it until then. */
export interface WaitEstimate {
  readonly readyUs: number;
  /** Undefined where it could go at once. */
  readonly constraint: Constraint | undefined;
}

/**
 * The earliest a newcomer could go, behind those who wait already (law L4). Exact for its lane, a lower bound above it.
 * Stale forecasts of those ahead are made anew only for somebody whose bound asks for it: who waits for ever need not know.
 */
export function estimatedUs(
  scheduler: Scheduler,
  roleBudget: RoleBudget,
  units: number,
  boundMs: number,
  nowUs: number,
): number {
  // The way of nearly every refusal: with nobody ahead it is the budgets' word alone.
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

/** What happens in another lane matters only where a budget is shared. */
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

/** When somebody in line could go who should have gone by now: it is as late as the first one is. */
export function overdueUs(scheduler: Scheduler, waiter: Waiter, nowUs: number): number {
  const first = scheduler.queueOf(waiter.roleBudget)?.first ?? waiter;
  return waiter.estimatedUs + (freeUs(first.roleBudget, first.units, nowUs) - first.estimatedUs);
}

/** When every budget on the way has room for so many units. */
export function freeUs(roleBudget: RoleBudget, units: number, nowUs: number): number {
  let us = nowUs;
  for (let at: Budget | undefined = roleBudget; at; at = at.above) us = Math.max(us, at.earliestUs(units, nowUs));
  return us;
}

/** Names what holds back the last of `wanted` units until `untilUs`: the budget that binds longest, or the missing slot. */
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
  // With room for this one everywhere, somebody else has the turn: at the widest budget they share.
  return (bindingUs > nowUs ? binding : widest).constraint(wanted, nowUs);
}
