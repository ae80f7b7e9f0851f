import type { Time } from "../../time/time.ts";

/**
 * The clock by which works wait, in epoch milliseconds. It is set to another clock, and then runs with the monotonic one:
 * a wall clock may be set back, and those of two machines may differ.
 */
export class QueueClock {
  readonly #time: Time;
  /** Epoch time at the origin of the monotonic clock. */
  #originMs = 0;

  constructor(time: Time) {
    this.#time = time;
    this.set(time.wallMs());
  }

  set(nowMs: number): void {
    this.#originMs = nowMs - this.#time.monotonicUs() / 1000;
  }

  /**
   * Sets the clock to the wall clock if that is ahead, as after a suspension of a Linux machine, in which the monotonic
   * clock stops.
   */
  catchUp(): void {
    const wallMs = this.#time.wallMs();
    if (wallMs > this.nowMs()) this.set(wallMs);
  }

  nowMs(): number {
    return Math.floor(this.#originMs + this.#time.monotonicUs() / 1000);
  }
}
