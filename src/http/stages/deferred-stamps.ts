import type { Grant } from "../../limiter/grant.ts";
import type { Time, Timer } from "../../time/time.ts";
import { setUnreferencedTimer } from "../../time/unreferenced-timer.ts";

/**
 * Grants of requests that were aborted right after they were written over a new connection. The server may notice such a
 * request a little later, so its units count as being written until then (law L1), while its slots are free already.
 */
export class DeferredStamps {
  readonly #time: Time;
  readonly #timers = new Map<Grant, Timer>();

  constructor(time: Time) {
    this.#time = time;
  }

  /**
   * Releases the slots now, and stamps the grant as written after `ms`. A program that ends earlier does not wait for it:
   * units that were leased from a shared store count as written when the lease ends.
   */
  release(grant: Grant, ms: number): void {
    grant.releaseUnstamped();
    this.#timers.set(
      grant,
      setUnreferencedTimer(this.#time, ms, () => this.#stamp(grant)),
    );
  }

  /** Stamps all grants now, because the hub is closing. */
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
