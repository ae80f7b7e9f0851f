/**
 * SQLite gives its lock to the process that happens to ask when the lock is free. Without pauses, a process that always
 * has something to write would starve the others. So after each transaction a process pauses for this factor, times the
 * duration of the transaction, times the number of other processes.
 */
const YIELD_FACTOR = 2;
/** Subtracted from each pause, so that occasional calls never wait. */
const YIELD_FREE_US = 5000;
const YIELD_US_MAX = 100_000;

/** How long this process must leave a shared file to the other processes. */
export class LockFairness {
  #yieldUntilUs = 0;

  /** To be called after a transaction. `processes` is the number that share the file. */
  recordTransaction(beganUs: number, endedUs: number, processes: number): void {
    // At least one other: a process that has just opened the file has not been counted yet.
    const others = Math.max(1, processes - 1);
    const yieldUntilUs = Math.max(this.#yieldUntilUs, endedUs) + (endedUs - beganUs) * others * YIELD_FACTOR;
    this.#yieldUntilUs = Math.min(yieldUntilUs, endedUs + YIELD_US_MAX);
  }

  /** Milliseconds to wait before the next transaction; 0 for none. */
  pauseMs(nowUs: number): number {
    return Math.max(0, this.#yieldUntilUs - nowUs - YIELD_FREE_US) / 1000;
  }
}
