/** The protected call. It does nothing but return a promise, so that only the breaker is timed. */

/** One object for all calls, so that a library that stores the last error does not store a stack for each call. */
const DOWN = new Error("the host is down");

export async function task(succeeds = true): Promise<void> {
  if (!succeeds) throw DOWN;
}
