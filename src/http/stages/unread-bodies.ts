import type { Time, Timer } from "../../time/time.ts";

/** A response whose body is perhaps not read. It is watched from `paused` to `resumed`. */
export interface PausedBody {
  /** Called `unreadMs` after `paused`. Aborts the response, or calls `paused` again if the body is still being read. */
  abandon(unreadMs: number): void;
}

/**
 * Aborts responses whose body is not read: each of them holds a slot and a connection. One timer serves all, set for the
 * body that was paused first, which is the first one in the Map.
 */
export class UnreadBodies {
  readonly #time: Time;
  readonly #limitMs: number;
  readonly #pausedSinceUs = new Map<PausedBody, number>();
  #timer: Timer | undefined;

  constructor(time: Time, limitMs: number) {
    this.#time = time;
    this.#limitMs = limitMs;
  }

  paused(body: PausedBody): void {
    if (this.#limitMs === Number.POSITIVE_INFINITY) return;
    this.#pausedSinceUs.delete(body);
    this.#pausedSinceUs.set(body, this.#time.monotonicUs());
    if (this.#timer === undefined) this.#arm(this.#limitMs);
  }

  /** The body is read again, or has ended. */
  resumed(body: PausedBody): void {
    this.#pausedSinceUs.delete(body);
    if (this.#pausedSinceUs.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#time.setTimer(ms, () => this.#abandonExpired());
  }

  #abandonExpired(): void {
    this.#timer = undefined;
    const nowUs = this.#time.monotonicUs();
    for (const [body, sinceUs] of this.#pausedSinceUs) {
      const leftMs = this.#limitMs - (nowUs - sinceUs) / 1000;
      if (leftMs > 0) {
        // `abandon` may have called `paused`, which has set the timer for the whole limit. This body is due earlier.
        this.#arm(leftMs);
        return;
      }
      this.#pausedSinceUs.delete(body);
      body.abandon(this.#limitMs);
    }
  }
}
