/** What the rest of the house knows of time. Whoever needs it is handed one of these; nobody reads a clock. */
export interface Time {
  /** Elapsed time in whole microseconds from an arbitrary origin. Never steps; use it for every wait and window. */
  monotonicUs(): number;
  /**
   * Elapsed time in whole microseconds from an origin that all processes of this machine share until it starts again.
   * Never steps; use it to compare instants of several processes.
   */
  machineUs(): number;
  /** The wall clock in epoch milliseconds. May step at any moment; use it only for what leaves the process. */
  wallMs(): number;
  /**
   * Calls `fire` once, about `delayMs` from now.
   * It may come up to a millisecond early, as Node's own timers do, and any time late when the event loop is
   * stalled: whoever is woken computes again.
   */
  setTimer(delayMs: number, fire: () => void): Timer;
  /** Resolves when `ms` have passed, never early. Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Timer {
  cancel(): void;
}
