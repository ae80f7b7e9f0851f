import type { RoleBudget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import type { Waiter } from "../limiter/wait-queue.ts";
import type { Time, Timer } from "../time/time.ts";
import { onAbort } from "./abort-watch.ts";

/** Timers come late; who was promised a turn is not sent away for the last few milliseconds. */
const MIN_GRACE_MS = 5;

/** Where one waits: the turnstile, or the cooling room, as the gate sees fit. */
export interface WaitDeps {
  join(waiter: Waiter): void;
  leave(waiter: Waiter): void;
  /** Lets the waiter through now if it may go now. */
  retry(waiter: Waiter): void;
  /** Others are being asked whether it may go, and will have answered in a moment. */
  isRequesting(waiter: Waiter): boolean;
  /** How often others were asked on behalf of its line so far. */
  requestCount(waiter: Waiter): number;
  /** When an overdue waiter could go; now or earlier when only a slot is missing. */
  readyUs(waiter: Waiter, nowUs: number): number;
}

export interface WaitOptions {
  readonly roleBudget: RoleBudget;
  readonly units: number;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  readonly estimatedUs: number;
  /** The bound that was judged at admission. */
  readonly boundMs: number;
  readonly aborted: (waitedMs: number) => void;
  /** Makes the refusal of somebody whose own bound is over and who is still in line. */
  readonly refusal: (waiter: Waiter, nowUs: number) => Error;
}

/**
 * Waits for a turn, until the signal or the call's own bound ends it.
 *
 * The bound was judged at admission. When it is over, a wait for slots ends; a wait for windows goes on for at most a
 * tenth of the bound, so that late timers do not turn a promise that was kept into a refusal at the last moment.
 */
export function wait(deps: WaitDeps, time: Time, options: WaitOptions): Promise<Grant> {
  const { roleBudget, units, call, arrivedUs, estimatedUs, boundMs } = options;
  const { signal, maxWaitMs = Number.POSITIVE_INFINITY } = call;
  const { promise, resolve, reject } = Promise.withResolvers<Grant>();
  const waitedMs = (nowUs: number) => (nowUs - arrivedUs) / 1000;
  let timer: Timer | undefined;
  let stopWatching: (() => void) | undefined;
  let isOver = false;

  const end = () => {
    isOver = true;
    timer?.cancel();
    stopWatching?.();
  };
  const giveUp = (reason: unknown) => {
    end();
    deps.leave(waiter);
    reject(reason);
  };
  const onAborted = (reason: unknown) => {
    if (isOver) return;
    // Out of the line first: whoever hears of it may come back in here.
    giveUp(reason);
    options.aborted(waitedMs(time.monotonicUs()));
  };
  const onBound = () => {
    const nowUs = time.monotonicUs();
    const leftMs = maxWaitMs - waitedMs(nowUs);
    if (leftMs > 0) return arm(leftMs);
    // Its instant may be this very one, with the timer of its lane next to fire.
    deps.retry(waiter);
    if (isOver) return;
    if (deps.isRequesting(waiter) && deps.requestCount(waiter) <= lastRequest) return arm(MIN_GRACE_MS);
    const readyUs = deps.readyUs(waiter, nowUs);
    const graceMs = Math.max(MIN_GRACE_MS, maxWaitMs / 10);
    if (readyUs > nowUs && readyUs - arrivedUs <= (maxWaitMs + graceMs) * 1000) return arm((readyUs - nowUs) / 1000);
    giveUp(options.refusal(waiter, nowUs));
  };
  const arm = (ms: number) => {
    timer = time.setTimer(ms, onBound);
  };
  const waiter: Waiter = {
    roleBudget,
    units,
    call,
    estimatedUs,
    latestStartUs: arrivedUs + boundMs * 1000,
    lastUnit: 0,
    hasLeft: false,
    arrivedUs,
    blockedUntilUs: 0,
    granted: grant => {
      end();
      resolve(grant);
    },
    refused: error => {
      end();
      reject(error);
    },
  };
  if (signal !== undefined) stopWatching = onAbort(signal, () => onAborted(signal.reason));
  call.onWait?.(onAborted);
  // The first question that counts it in. What is asked after that is asked for somebody else's sake.
  const lastRequest = deps.requestCount(waiter) + 1;
  if (maxWaitMs < Number.POSITIVE_INFINITY) arm(maxWaitMs);
  deps.join(waiter);
  return promise;
}
