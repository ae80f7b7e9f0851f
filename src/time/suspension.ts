import type { Time } from "./time.ts";

/** A wall clock that gains more than this on the monotonic one was set, or the machine was suspended. */
const GAIN_MS = 1000;

/**
 * Detects that the machine was suspended: its monotonic clock stops then, and the wall clock does not. A wall clock that
 * is set forward looks the same, so the answer may only be used where a wrong yes does no harm.
 */
export class Suspension {
  readonly #time: Time;
  #offsetMs: number;

  constructor(time: Time) {
    this.#time = time;
    this.#offsetMs = offsetMs(time);
  }

  /** Whether the machine was suspended since the last call. */
  wasSuspended(): boolean {
    const before = this.#offsetMs;
    this.#offsetMs = offsetMs(this.#time);
    return this.#offsetMs - before > GAIN_MS;
  }
}

function offsetMs(time: Time): number {
  return time.wallMs() - time.monotonicUs() / 1000;
}
