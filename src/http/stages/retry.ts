import type { Denial } from "../../breaker/denial.ts";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { EvictingMap } from "../../core/evicting-map.ts";
import { RejectedError } from "../../errors.ts";
import type { BreakerRegistry } from "../../gate/breaker-registry.ts";
import { breakersOf } from "../../gate/registry-breakers.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { RequestTelemetry } from "../request-telemetry.ts";
import { isReplayable, ResendingRequest } from "./resending-request.ts";
import type { RetryPolicy } from "./retry-policy.ts";
import type { OutgoingRequest, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

export interface RetryDeps {
  readonly policy: RetryPolicy;
  readonly budget: RetryBudget;
  readonly breakers: BreakerRegistry;
  readonly time: Time;
  /** In [0, 1). */
  readonly random: () => number;
  readonly telemetry: RequestTelemetry;
}

/**
 * Retries requests that the host or the network failed (law B7). Each attempt takes its own grant. No attempt begins
 * before Retry-After has passed, after the deadline, or without a token of the host's retry budget. The hub's own
 * refusals are never retried. When no further attempt is made, the caller gets the last response.
 */
export function retryStage(deps: RetryDeps, next: SendRequest): SendRequest {
  return (request, sink) => {
    deps.budget.earn(request.host);
    const mayRetry = deps.policy.attempts > 1 && !request.isSingleAttempt && isReplayable(request);
    return mayRetry ? new RetryingRequest(deps, next, request, sink) : next(request, sink);
  };
}

class RetryingRequest extends ResendingRequest {
  readonly #deps: RetryDeps;
  /** The first attempt. */
  readonly #request: OutgoingRequest;
  #timer: Timer | undefined;
  #failures = 0;
  /** True while the next attempt waits for the end of a cooldown. */
  #isInCooldown = false;

  constructor(deps: RetryDeps, next: SendRequest, request: OutgoingRequest, sink: ResponseSink) {
    super(deps.time, next, sink);
    this.#deps = deps;
    this.#request = request;
    this.dispatch(request);
  }

  override abort(reason: unknown): void {
    this.#timer?.cancel();
    super.abort(reason);
  }

  protected withholds({ status }: ResponseHead): boolean {
    return this.#scheduleRetry(status, undefined);
  }

  protected withholdsFailure(error: unknown): boolean {
    // The hub refused the next attempt: the caller gets the last response instead of the refusal.
    if (error instanceof RejectedError && this.deliverWithheld()) return true;
    return this.#scheduleRetry(undefined, error);
  }

  protected onWithheldEnd(): void {
    // The next attempt is sent by its timer.
  }

  /** True when another attempt has been scheduled. */
  #scheduleRetry(status: number | undefined, error: unknown): boolean {
    const { outcome, retryAfterMs } = this.#request.record;
    if (outcome?.kind !== "failure" || this.isOver) return false;
    const { policy, budget, breakers, time, random } = this.#deps;
    const { host, path, role, call } = this.#request;
    this.#failures += 1;
    if (this.#failures >= policy.attempts) return false;
    const nowUs = time.monotonicUs();
    let delayMs = backoffMs(policy, this.#failures, random(), retryAfterMs);
    const denial = breakersOf(breakers).check({
      host,
      path,
      role,
      resolver: call.resolver,
      partition: call.partition,
    });
    // During the ramp-up after a cooldown, the attempt is delayed in the queue, as by a rate limit.
    if (denial !== undefined && !denial.isRampUp) {
      // Wait for the end of a cooldown, but not for a circuit that failures opened: the caller gets the failed response.
      if (!outcome.throttled || denial.reason === "failures" || !this.#mayWaitFor(denial, nowUs)) return false;
      delayMs = Math.max(delayMs, denial.retryAfterMs);
    }
    this.#isInCooldown = denial !== undefined && !denial.isRampUp && !denial.isHold;
    const dueUs = nowUs + delayMs * 1000;
    if (dueUs > this.#request.deadlineUs || !budget.spend(host)) return false;
    this.#request.record.sentMs = undefined;
    this.#deps.telemetry.emitRetry(this.#request, delayMs, status, error);
    // A listener of the event may have aborted the call.
    if (!this.isOver) this.#arm(dueUs, nowUs);
    return true;
  }

  /** Whether `maxBreakerWaitMs` allows the wait from the failure to the end of a cooldown. A hold of an operator is none. */
  #mayWaitFor(denial: Denial, failedUs: number): boolean {
    const { maxBreakerWaitMs } = this.#request.call;
    return denial.isHold || maxBreakerWaitMs === undefined || denial.untilUs <= failedUs + maxBreakerWaitMs * 1000;
  }

  /** @param failedUs when the previous attempt failed, in monotonic microseconds */
  #arm(dueUs: number, failedUs: number): void {
    const leftMs = (dueUs - this.#deps.time.monotonicUs()) / 1000;
    this.#timer = this.#deps.time.setTimer(leftMs, () => {
      // A timer may fire up to 1 ms early, and a request must not be sent before Retry-After has passed.
      if (this.#deps.time.monotonicUs() < dueUs) this.#arm(dueUs, failedUs);
      else this.#wake(failedUs);
    });
  }

  /** Checks the breakers again: since the timer was set, a cooldown may have been extended or a circuit opened. */
  #wake(failedUs: number): void {
    this.#timer = undefined;
    const { host, path, role, call, deadlineUs } = this.#request;
    const denial = breakersOf(this.#deps.breakers).check({
      host,
      path,
      role,
      resolver: call.resolver,
      partition: call.partition,
    });
    const isBlocked = denial?.isRampUp === false;
    const mayWait = isBlocked && denial.untilUs <= deadlineUs && this.#mayWaitFor(denial, failedUs);
    if (mayWait && denial.reason === "retry-after") {
      this.#isInCooldown = true;
      this.#arm(denial.untilUs, failedUs);
      return;
    }
    if (isBlocked && this.deliverWithheld()) return;
    const nowUs = this.#deps.time.monotonicUs();
    const retryDelayMs = (nowUs - failedUs) / 1000;
    const bounded = withDeadlineAsMaxWait(this.#request, nowUs, this.#isInCooldown ? retryDelayMs : 0);
    this.dispatch({ ...bounded, cause: "retry", retryDelayMs });
  }
}

/**
 * A retry may wait in the queue until its deadline, and not only for `max_delay_ms`: it has waited for the server before.
 * Without `maxBreakerWaitMs`, only a call with `maxWaitMs` waits for circuits again.
 * @param cooldownMs how long it has waited for a cooldown
 */
export function withDeadlineAsMaxWait(request: OutgoingRequest, nowUs: number, cooldownMs = 0): OutgoingRequest {
  const { call, deadlineUs } = request;
  const {
    maxWaitMs = Math.max(0, (deadlineUs - nowUs) / 1000),
    maxBreakerWaitMs = call.maxWaitMs === undefined ? 0 : undefined,
  } = call;
  const breakerLeftMs = maxBreakerWaitMs && Math.max(0, maxBreakerWaitMs - cooldownMs);
  return { ...request, call: { ...call, maxWaitMs, maxBreakerWaitMs: breakerLeftMs } };
}

/** The tokens of a new host, and the maximum. One retry costs one token. */
const BUCKET_TOKENS_MAX = 3;
/** Five calls allow one retry. */
const TOKENS_PER_CALL = 0.2;

interface RetryBucket {
  tokens: number;
}

/**
 * Limits the attempts at a host to 1.2 times its calls plus 3, in any period (law B7). In an outage most calls fail, and
 * retrying all of them would multiply the load on an overloaded host. The tokens are capped, so that a long time without
 * failures does not allow many retries at once.
 */
export class RetryBudget {
  readonly #buckets = new EvictingMap<RetryBucket>(({ tokens }) => tokens >= BUCKET_TOKENS_MAX);

  /** Must be called once for each call to the host. */
  earn(host: string): void {
    const bucket = this.#buckets.get(host);
    if (bucket !== undefined) bucket.tokens = Math.min(BUCKET_TOKENS_MAX, bucket.tokens + TOKENS_PER_CALL);
  }

  /** Takes one token. False if no token is left. */
  spend(host: string): boolean {
    const bucket = this.#buckets.get(host) ?? { tokens: BUCKET_TOKENS_MAX };
    // Sums of 0.2 are not exact in binary.
    if (bucket.tokens < 1 - 1e-9) return false;
    bucket.tokens -= 1;
    this.#buckets.add(host, bucket);
    return true;
  }
}
