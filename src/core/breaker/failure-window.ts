/** Detects `threshold` failures within a rolling window (law B6). */
export class FailureWindow {
  /** The newest failures, at most `threshold` of them. */
  #failures: { readonly atUs: number; readonly isUnreached: boolean }[] = [];

  /**
   * Records a failure. When the threshold is reached, clears the window and returns true, or "local-only" if calls that
   * never reached the host were needed for it.
   */
  add(nowUs: number, threshold: number, windowUs: number, isUnreached = false): boolean | "local-only" {
    this.#failures.push({ atUs: nowUs, isUnreached });
    while (this.#failures.length > threshold) this.#failures.shift();
    const oldestUs = this.#failures[0]?.atUs ?? nowUs;
    if (this.#failures.length < threshold || nowUs - oldestUs >= windowUs) return false;
    const isLocalOnly = this.#failures.some(failure => failure.isUnreached);
    this.clear();
    return isLocalOnly ? "local-only" : true;
  }

  /** Failures within the window now. */
  count(nowUs: number, windowUs: number): number {
    return this.#failures.filter(({ atUs }) => nowUs - atUs < windowUs).length;
  }

  clear(): void {
    this.#failures = [];
  }
}

/**
 * Joins the throttled answers to requests that were in flight together into one event (law B10).
 * A burst that a server rejects counts once, however many of its requests are throttled.
 */
export class ThrottleEvents {
  /** Number of the last permit that was issued before the newest event. */
  #lastPermit = 0;

  /** Whether a throttled answer to this permit belongs to an event that was counted already. */
  isCounted(permit: number): boolean {
    return permit > 0 && permit <= this.#lastPermit;
  }

  /** Counts a new event: all permits issued until now belong to it. */
  count(lastPermit: number): void {
    this.#lastPermit = lastPermit;
  }
}
