import type { Time, Timer } from "./time.ts";

/** `Time.sleep` in terms of the other three, shared by every implementation of `Time`. */
export function sleep(time: Omit<Time, "sleep">, ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) {
    reject(signal.reason);
    return promise;
  }
  const deadlineUs = time.monotonicUs() + ms * 1000;
  let timer: Timer;
  const onAbort = () => {
    timer.cancel();
    reject(signal?.reason);
  };
  const arm = () => {
    const leftUs = deadlineUs - time.monotonicUs();
    timer = time.setTimer(Math.max(0, leftUs / 1000), () => {
      // A timer may be early; the deadline decides.
      if (time.monotonicUs() < deadlineUs) return arm();
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
  };
  arm();
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}
