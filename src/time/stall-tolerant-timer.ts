import type { Time, Timer } from "./time.ts";

/** On a busy machine, timers are late by up to this much although nothing blocks the event loop. */
const USUAL_LATENESS_US = 10_000;

/**
 * A time limit for a reply from another process or host. `fire` is called after `ms` milliseconds. After a stall of the
 * event loop, Node runs its timers before it reads the replies that arrived in the meantime. So the last quarter of `ms`
 * has a timer of its own: if this timer is late by more than a quarter, `fire` waits for another quarter.
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
