import type { Time } from "./time.ts";

/**
 * Waits before the next attempt, for example to open a file that another process has locked. Rejects with the signal's
 * reason. Not for rate limits: a request waits for a grant of the gate.
 */
export function pause(time: Time, ms: number, signal?: AbortSignal): Promise<void> {
  return time.sleep(ms, signal);
}
