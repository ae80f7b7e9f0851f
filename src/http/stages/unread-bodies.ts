import type { Time, Timer } from "../../time/time.ts";

/** A response whose body its caller has paused. */
export interface PausedBody {
  /** Aborts the response: its caller has not read the body for `unreadMs`. */
  abandon(unreadMs: number): void;
}

/**
 * Aborts responses whose body is not read: each of them holds a slot and a connection. One timer serves all, set for the
 * body that has been paused longest, which is the first one in the Map.
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
    this.#timer ??= this.#arm(this.#limitMs);
  }

  /** The body is read again, or has ended. */
  resumed(body: PausedBody): void {
    this.#pausedSinceUs.delete(body);
    if (this.#pausedSinceUs.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(ms: number): Timer {
    return this.#time.setTimer(ms, () => this.#abandonExpired());
  }

  #abandonExpired(): void {
    this.#timer = undefined;
    const nowUs = this.#time.monotonicUs();
    for (const [body, sinceUs] of this.#pausedSinceUs) {
      const leftMs = this.#limitMs - (nowUs - sinceUs) / 1000;
      if (leftMs > 0) {
        // `abandon` may have called `paused` for a body that is read slowly; that has set the timer.
        this.#timer ??= this.#arm(leftMs);
        return;
      }
      this.#pausedSinceUs.delete(body);
      body.abandon(this.#limitMs);
    }
  }
}
