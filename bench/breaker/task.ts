/** The call that a breaker stands before. It costs as little as a promise can: what is timed is the breaker. */

/** One for all: a peer that keeps the last error is not to be charged with its stack. */
const DOWN = new Error("the host is down");

export async function task(isWell = true): Promise<void> {
  if (!isWell) throw DOWN;
}
