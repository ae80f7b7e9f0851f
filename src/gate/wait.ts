import type { Time, Timer } from "../time/time.ts";
import type { Lane } from "./budget.ts";
import { overdueUs } from "./forecast.ts";
import type { Turnstile } from "./turnstile.ts";
import type { Waiter } from "./waiting-line.ts";

/** Timers come late; who was promised a turn is not sent away for the last few milliseconds. */
const LEAST_GRACE_MS = 5;

export interface WaitOptions<Result> {
  readonly lane: Lane;
  readonly units: number;
  readonly arrivedUs: number;
  readonly plannedUs: number;
  readonly signal: AbortSignal | undefined;
  /** The call's own bound; undefined for none. */
  readonly maxWaitMs: number | undefined;
  readonly granted: (waitedMs: number) => Result;
  readonly aborted: (waitedMs: number) => void;
  /** Makes the refusal of somebody whose bound is over; it could go at `readyUs`. */
  readonly refusal: (readyUs: number, nowUs: number) => Error;
}

/**
 * Waits in line for a turn, until the signal or the call's own bound ends it.
 *
 * The bound was judged at admission. When it is over, a wait for slots ends; a wait for windows goes on for at most a
 * tenth of the bound, so that late timers do not turn a promise that was kept into a refusal at the last moment.
 */
export function wait<Result>(turnstile: Turnstile, time: Time, options: WaitOptions<Result>): Promise<Result> {
  const { lane, units, arrivedUs, plannedUs, signal, maxWaitMs = Number.POSITIVE_INFINITY } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const waitedMs = (nowUs: number) => (nowUs - arrivedUs) / 1000;
  let timer: Timer | undefined;
  let isOver = false;

  const end = () => {
    isOver = true;
    timer?.cancel();
    signal?.removeEventListener("abort", onAbort);
  };
  const giveUp = (reason: unknown) => {
    end();
    turnstile.leave(waiter);
    reject(reason);
  };
  const onAbort = () => {
    options.aborted(waitedMs(time.monotonicUs()));
    giveUp(signal?.reason);
  };
  const onBound = () => {
    const nowUs = time.monotonicUs();
    const leftMs = maxWaitMs - waitedMs(nowUs);
    if (leftMs > 0) return arm(leftMs);
    // Its instant may be this very one, with the timer of its lane next to fire.
    turnstile.retry(lane);
    if (isOver) return;
    const readyUs = overdueUs(turnstile, waiter, nowUs);
    const graceMs = Math.max(LEAST_GRACE_MS, maxWaitMs / 10);
    if (readyUs > nowUs && readyUs - arrivedUs <= (maxWaitMs + graceMs) * 1000) return arm((readyUs - nowUs) / 1000);
    giveUp(options.refusal(readyUs, nowUs));
  };
  const arm = (ms: number) => {
    timer = time.setTimer(ms, onBound);
  };
  const waiter: Waiter = {
    lane,
    units,
    plannedUs,
    lastUnit: 0,
    hasLeft: false,
    granted: nowUs => {
      end();
      resolve(options.granted(waitedMs(nowUs)));
    },
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  if (maxWaitMs < Number.POSITIVE_INFINITY) arm(maxWaitMs);
  turnstile.join(waiter);
  return promise;
}
