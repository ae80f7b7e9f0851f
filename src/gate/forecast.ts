/** When somebody could go, as far as anybody can tell. Slots are left out: nobody knows when one is freed. */
import type { Constraint } from "../errors.ts";
import type { Budget, Lane } from "./budget.ts";
import type { Turnstile } from "./turnstile.ts";
import type { Waiter } from "./waiting-line.ts";

/** The earliest a newcomer could go, behind those who wait already (law L4). Exact for its lane, a lower bound above it. */
export function plannedUs(turnstile: Turnstile, lane: Lane, units: number, nowUs: number): number {
  const line = turnstile.lineOf(lane);
  if (line?.isStale) line.replan(waiter => planOneUs(turnstile, lane, waiter.units, nowUs));
  return planOneUs(turnstile, lane, units, nowUs);
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
    const aboveUs = units === 0 ? at.holdUntilUs : at.forecastUs(turnstile.unitsAhead(at, lane, ahead), units, nowUs);
    atUs = Math.max(atUs, aboveUs);
  }
  return atUs;
}

/** When somebody in line could go who should have gone by now: it is as late as the first one is. */
export function overdueUs(turnstile: Turnstile, waiter: Waiter, nowUs: number): number {
  const first = turnstile.lineOf(waiter.lane)?.first ?? waiter;
  let firstUs = nowUs;
  for (let at: Budget | undefined = first.lane; at; at = at.above)
    firstUs = Math.max(firstUs, at.earliestUs(first.units, nowUs));
  return waiter.plannedUs + (firstUs - first.plannedUs);
}

/** Names what holds somebody back until `untilUs`: the budget that binds longest, or else the one without a free slot. */
export function constraintOf(
  turnstile: Turnstile,
  root: Budget,
  lane: Lane,
  units: number,
  untilUs: number,
  nowUs: number,
): Constraint {
  if (untilUs <= nowUs) {
    for (let at: Budget | undefined = lane; at; at = at.above)
      if (!at.hasSlot) return at.slotConstraint("max_concurrent");
    return root.slotConstraint("max_inflight");
  }
  // Whoever is ahead takes its share first.
  const wanted = units === 0 ? 0 : units + (turnstile.lineOf(lane)?.units ?? 0);
  let binding: Budget = lane;
  let bindingUs = lane.earliestUs(wanted, nowUs);
  for (let at = lane.above; at; at = at.above) {
    const atUs = at.earliestUs(wanted, nowUs);
    if (atUs > bindingUs) {
      binding = at;
      bindingUs = atUs;
    }
  }
  return binding.constraint(wanted, nowUs);
}
