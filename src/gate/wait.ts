import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { Time, Timer } from "../time/time.ts";
import { onAbort } from "./abort-watch.ts";

/**
 * Timers fire late. A request that was admitted is not refused because its start is a few milliseconds after its bound.
 */
const MIN_GRACE_MS = 5;

/** The queues of the gate: a scheduler, or the breaker queue. */
export interface WaitDeps {
  join(waiter: Waiter): void;
  leave(waiter: Waiter): void;
  /** Grants the request now if that is possible. */
  retry(waiter: Waiter): void;
  /** A request to the store that it needs is in flight. */
  isRequesting(waiter: Waiter): boolean;
  /** Number of requests to the store that were made for its role budget so far. */
  requestCount(waiter: Waiter): number;
  /** When a request whose estimate has passed could start; now or earlier if only a slot is missing. */
  readyUs(waiter: Waiter, nowUs: number): number;
}

export interface WaitOptions {
  readonly roleBudget: RoleBudget;
  readonly units: number;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  readonly estimatedUs: number;
  /** The bound in ms that admission compared the estimate with. */
  readonly boundMs: number;
  readonly aborted: (waitedMs: number) => void;
  /** The error for a request that is still queued when its bound is over. */
  readonly refusal: (waiter: Waiter, nowUs: number) => Error;
}

/**
 * Queues a request until it is granted, or until its signal or its own `maxWaitMs` ends the wait.
 *
 * When the bound is over, a wait for slots ends. A wait for windows continues for at most a tenth of the bound, because
 * timers are late: without that, requests that were admitted would be refused in the last milliseconds.
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
    // Leave the queue before the event: its listeners may call the gate.
    giveUp(reason);
    options.aborted(waitedMs(time.monotonicUs()));
  };
  const onBound = () => {
    const nowUs = time.monotonicUs();
    const leftMs = maxWaitMs - waitedMs(nowUs);
    if (leftMs > 0) return arm(leftMs);
    // It may be due at this very instant, with the timer of its scheduler node firing next.
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
  // The next request to the store includes this one. Later ones are made for other requests and do not extend its wait.
  const lastRequest = deps.requestCount(waiter) + 1;
  if (maxWaitMs < Number.POSITIVE_INFINITY) arm(maxWaitMs);
  deps.join(waiter);
  return promise;
}
