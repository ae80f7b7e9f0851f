/** When somebody could go, as far as anybody can tell. Slots are left out: nobody knows when one is freed. */
import type { Constraint } from "../errors.ts";
import type { Budget, Lane } from "./budget.ts";
import type { Turnstile } from "./scheduler.ts";
import type { Waiter, WaitingLine } from "./wait-queue.ts";

/** When one that came now could go, behind those who wait, and what would keep it until then. */
export interface Forecast {
  readonly readyUs: number;
  /** Undefined where it could go at once. */
  readonly constraint: Constraint | undefined;
}

/**
 * The earliest a newcomer could go, behind those who wait already (law L4). Exact for its lane, a lower bound above it.
 * Stale forecasts of those ahead are made anew only for somebody whose bound asks for it: who waits for ever need not know.
 */
export function plannedUs(turnstile: Turnstile, lane: Lane, units: number, boundMs: number, nowUs: number): number {
  // The way of nearly every refusal: with nobody ahead it is the budgets' word alone.
  if (turnstile.waiting === 0) return freeUs(lane, units, nowUs);
  const line = turnstile.lineOf(lane);
  if (line !== undefined && isStale(turnstile, lane, line)) {
    if (boundMs === Number.POSITIVE_INFINITY) {
      line.isStale = true;
      return Math.max(nowUs, line.last?.plannedUs ?? 0);
    }
    line.replan(waiter => planOneUs(turnstile, lane, waiter.units, nowUs));
  }
  if (line !== undefined) line.epoch = turnstile.epoch;
  return planOneUs(turnstile, lane, units, nowUs);
}

/** What happens in another lane matters only where a budget is shared. */
function isStale(turnstile: Turnstile, lane: Lane, line: WaitingLine): boolean {
  return line.isStale || (lane.above !== undefined && line.epoch !== turnstile.epoch);
}

function planOneUs(turnstile: Turnstile, lane: Lane, units: number, nowUs: number): number {
  const line = turnstile.lineOf(lane);
  const ahead = line?.units ?? 0;
  const lastUs = line?.last?.plannedUs;
  let atUs = Math.max(nowUs, lane.holdUntilUs, lastUs ?? 0);
  if (units > 0) {
    const { log, windows, spacingUs } = lane;
    const known = log.written + log.pending;
    for (const [index, window] of windows.entries()) {
      const unit = known + ahead + units - window.limit;
      if (unit <= 0) continue;
      const stampUs =
        unit <= known ? log.stampUs(index, window, unit, nowUs) : (line?.plannedUs(unit - known) ?? nowUs);
      atUs = Math.max(atUs, stampUs + window.spanUs);
    }
    atUs = Math.max(atUs, lastUs === undefined ? log.earliestUs([], spacingUs, units, nowUs) : lastUs + spacingUs);
  }
  for (let at = lane.above; at; at = at.above) {
    const aheadThere = units === 0 ? 0 : turnstile.unitsAhead(at, lane, ahead, nowUs);
    atUs = Math.max(atUs, units === 0 ? at.holdUntilUs : at.forecastUs(aheadThere, units, nowUs));
  }
  return atUs;
}

/** When somebody in line could go who should have gone by now: it is as late as the first one is. */
export function overdueUs(turnstile: Turnstile, waiter: Waiter, nowUs: number): number {
  const first = turnstile.lineOf(waiter.lane)?.first ?? waiter;
  return waiter.plannedUs + (freeUs(first.lane, first.units, nowUs) - first.plannedUs);
}

/** When every budget on the way has room for so many units. */
export function freeUs(lane: Lane, units: number, nowUs: number): number {
  let us = nowUs;
  for (let at: Budget | undefined = lane; at; at = at.above) us = Math.max(us, at.earliestUs(units, nowUs));
  return us;
}

/** Names what holds back the last of `wanted` units until `untilUs`: the budget that binds longest, or the missing slot. */
export function constraintOf(root: Budget, lane: Lane, wanted: number, untilUs: number, nowUs: number): Constraint {
  if (untilUs <= nowUs) {
    for (let at: Budget | undefined = lane; at; at = at.above) {
      if (!at.hasSlot) return at.slotConstraint("max_concurrent");
    }
    if (!root.hasSlot) return root.slotConstraint("max_inflight");
  }
  let binding: Budget = lane;
  let bindingUs = lane.earliestUs(wanted, nowUs);
  let widest: Budget = lane;
  for (let at = lane.above; at; at = at.above) {
    widest = at;
    const atUs = at.earliestUs(wanted, nowUs);
    if (atUs <= bindingUs) continue;
    binding = at;
    bindingUs = atUs;
  }
  // With room for this one everywhere, somebody else has the turn: at the widest budget they share.
  return (bindingUs > nowUs ? binding : widest).constraint(wanted, nowUs);
}
