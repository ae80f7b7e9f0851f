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
