import type { Time, Timer } from "./time.ts";

/** Timers of a busy machine are late by this much without a stall. */
const USUAL_LATENESS_US = 10_000;

/**
 * A time limit for a reply from outside. `fire` is called after `ms` milliseconds. If the event loop was blocked so long
 * that the timer of the last quarter is late by more than a quarter, the loop gets another quarter first: after a stall
 * Node runs its timers before it reads the replies that have arrived meanwhile.
 */
export function setStallTolerantTimer(time: Time, ms: number, fire: () => void): Timer {
  const quarterMs = ms / 4;
  let timer = time.setTimer(ms - quarterMs, lastQuarter);
  return { cancel: () => timer.cancel() };

  function lastQuarter(): void {
    const dueUs = time.monotonicUs() + quarterMs * 1000;
    timer = time.setTimer(quarterMs, () => {
      const lateUs = time.monotonicUs() - dueUs;
      if (lateUs > Math.max(USUAL_LATENESS_US, quarterMs * 1000)) lastQuarter();
      else fire();
    });
  }
}
