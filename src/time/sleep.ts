import type { Time, Timer } from "./time.ts";

/** `Time.sleep`, built from the clock and the timer of a `Time`. Every implementation of `Time` uses it. */
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
      // A timer may be up to 1 ms early.
      if (time.monotonicUs() < deadlineUs) return arm();
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
  };
  arm();
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}
