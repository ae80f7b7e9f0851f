/** Clocks and timers. Every component gets its `Time` as an option, so that tests can control it. */
export interface Time {
  /** Elapsed time in whole microseconds since an arbitrary origin. Never steps; use it for waits and windows. */
  monotonicUs(): number;
  /**
   * Elapsed time in whole microseconds since an origin that all processes of this machine share until it restarts.
   * Never steps; use it to compare instants of several processes.
   */
  machineUs(): number;
  /** The wall clock in epoch milliseconds. May step at any time; use it only for values that leave the process. */
  wallMs(): number;
  /**
   * Calls `fire` once, about `delayMs` milliseconds from now.
   * The call may be up to 1 ms early, as with Node's timers, and late when the event loop is blocked, so `fire` must
   * check the clock again.
   */
  setTimer(delayMs: number, fire: () => void): Timer;
  /** Resolves after `ms` milliseconds, never early. Rejects with the signal's reason when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A timer that was set with `Time.setTimer`. */
export interface Timer {
  /** Prevents the call of `fire`. Has no effect after the call. */
  cancel(): void;
  /** Lets the process end before the call, like `unref` of Node's timers. @default the timer keeps the process alive */
  unref?(): void;
  /** Undoes `unref`: the timer keeps the process alive until the call. */
  ref?(): void;
}
