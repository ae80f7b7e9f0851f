import type { Grant } from "../../limiter/grant.ts";
import type { Time, Timer } from "../../time/time.ts";

/**
 * Requests that were dropped right after they were written over a new connection. Their servers may notice them in a
 * moment only, so they go on counting as being written for that moment, although nothing else is left of them (law L1).
 */
export class DeferredStamps {
  readonly #time: Time;
  readonly #timers = new Map<Grant, Timer>();

  constructor(time: Time) {
    this.#time = time;
  }

  /** The slots of this one are free now, and it is written when `ms` have passed. */
  release(grant: Grant, ms: number): void {
    grant.releaseUnstamped();
    this.#timers.set(
      grant,
      this.#time.setTimer(ms, () => this.#stamp(grant)),
    );
  }

  /** Nothing more is sent from here: what is left is written now. */
  stampAll(): void {
    for (const [grant, timer] of this.#timers) {
      timer.cancel();
      this.#stamp(grant);
    }
  }

  #stamp(grant: Grant): void {
    this.#timers.delete(grant);
    grant.written();
  }
}
