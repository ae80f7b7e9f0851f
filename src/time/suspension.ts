import type { Time } from "./time.ts";

/** If the wall clock gains more than this on the monotonic clock, it was set forward, or the machine was suspended. */
const MAX_GAIN_MS = 1000;

/**
 * Detects that the machine was suspended, on Linux: there the monotonic clock stops, and the wall clock does not. On macOS
 * and Windows both clocks run on, so what was stored before a suspension is old by the monotonic clock too. A wall clock
 * that is set forward looks like a suspension, so use the answer only where a false positive does no harm.
 */
export class Suspension {
  readonly #time: Time;
  #offsetMs: number;

  constructor(time: Time) {
    this.#time = time;
    this.#offsetMs = offsetMs(time);
  }

  /** Whether the monotonic clock has stopped, or the wall clock was set forward, since the last call. */
  wasSuspended(): boolean {
    const beforeMs = this.#offsetMs;
    this.#offsetMs = offsetMs(this.#time);
    return this.#offsetMs - beforeMs > MAX_GAIN_MS;
  }
}

/** How far the wall clock is ahead of the monotonic clock. */
function offsetMs(time: Time): number {
  return time.wallMs() - time.monotonicUs() / 1000;
}
