import type { Time, Timer } from "../../time/time.ts";

/** A response body whose reader has asked for a pause. */
export interface PausedBody {
  /** Nobody went on reading. */
  abandon(): void;
}

/**
 * Looks after bodies that nobody reads: each of them keeps a slot, and the server a connection.
 * One timer for all, armed for the one that has been paused longest: a map keeps the order in which they came.
 */
export class UnreadBodies {
  readonly #time: Time;
  readonly #limitMs: number;
  readonly #sinceUs = new Map<PausedBody, number>();
  #timer: Timer | undefined;

  constructor(time: Time, limitMs: number) {
    this.#time = time;
    this.#limitMs = limitMs;
  }

  paused(body: PausedBody): void {
    if (this.#limitMs === Number.POSITIVE_INFINITY) return;
    this.#sinceUs.delete(body);
    this.#sinceUs.set(body, this.#time.monotonicUs());
    this.#timer ??= this.#arm(this.#limitMs);
  }

  /** It is read again, or over. */
  resumed(body: PausedBody): void {
    this.#sinceUs.delete(body);
    if (this.#sinceUs.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(ms: number): Timer {
    return this.#time.setTimer(ms, () => this.#abandonExpired());
  }

  #abandonExpired(): void {
    this.#timer = undefined;
    const nowUs = this.#time.monotonicUs();
    for (const [body, sinceUs] of this.#sinceUs) {
      const leftMs = this.#limitMs - (nowUs - sinceUs) / 1000;
      if (leftMs > 0) {
        this.#timer = this.#arm(leftMs);
        return;
      }
      this.#sinceUs.delete(body);
      body.abandon();
    }
  }
}
