import type { BreakerRegistry } from "../../breaker/breaker-registry.ts";
import { breakersOf } from "../../breaker/registry-breakers.ts";
import { type BackoffPolicy, backoffMs } from "../../core/breaker/backoff.ts";
import { RejectedError } from "../../errors.ts";
import type { Time, Timer } from "../../time/time.ts";
import { isReplayable } from "./replayable.ts";
import { ResendingRequest } from "./resending-request.ts";
import type { RetryBudget } from "./retry-budget.ts";
import type { OutgoingRequest, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

export interface RetryPolicy extends BackoffPolicy {
  /** Attempts in all, the first included. */
  readonly attempts: number;
}

export interface RetryDeps {
  readonly policy: RetryPolicy;
  readonly budget: RetryBudget;
  readonly breakers: BreakerRegistry;
  readonly time: Time;
  /** In [0, 1). */
  readonly random: () => number;
  readonly retrying: (request: OutgoingRequest, delayMs: number, status: number | undefined, error: unknown) => void;
}

/**
 * Sends again what has failed through no fault of the request (law B7). Each attempt passes the gate for itself, and
 * none begins before the server said, after the deadline, or beyond the host's budget. What we refused ourselves is
 * never tried again. When nothing more is tried, the caller gets the last answer as it came.
 */
export function retrying(deps: RetryDeps, next: SendRequest): SendRequest {
  return (request, sink) => {
    deps.budget.earn(request.host);
    const mayRetry = deps.policy.attempts > 1 && !request.isSingleAttempt && isReplayable(request);
    return mayRetry ? new RetryingRequest(deps, next, request, sink) : next(request, sink);
  };
}

class RetryingRequest extends ResendingRequest {
  readonly #deps: RetryDeps;
  #request: OutgoingRequest;
  #timer: Timer | undefined;
  #failures = 0;

  constructor(deps: RetryDeps, next: SendRequest, request: OutgoingRequest, sink: ResponseSink) {
    super(next, sink);
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
    // What we refuse ourselves is no answer where there was one.
    if (error instanceof RejectedError && this.deliverWithheld()) return true;
    return this.#scheduleRetry(undefined, error);
  }

  protected onWithheldEnd(): void {
    // The next attempt waits for its timer, not for this.
  }

  /** True when another attempt is on its way. */
  #scheduleRetry(status: number | undefined, error: unknown): boolean {
    const { outcome, retryAfterMs } = this.#request.record;
    if (outcome?.kind !== "failure" || this.isOver) return false;
    const { policy, budget, breakers, time, random } = this.#deps;
    const { host, role, call } = this.#request;
    this.#failures += 1;
    if (this.#failures >= policy.attempts) return false;
    const nowUs = time.monotonicUs();
    let delayMs = backoffMs(policy, this.#failures, random(), retryAfterMs);
    const denial = breakers.check({ host, role, resolver: call.resolver });
    if (denial !== undefined) {
      // A host that asked for a pause is waited for; from one that is cut off for failing, the caller gets what it said.
      if (!outcome.throttled || denial.reason === "failures") return false;
      delayMs = Math.max(delayMs, denial.retryAfterMs);
    }
    const dueUs = nowUs + delayMs * 1000;
    if (dueUs > this.#request.deadlineUs || !budget.spend(host)) return false;
    this.#request.record.sentMs = undefined;
    this.#deps.retrying(this.#request, delayMs, status, error);
    this.#arm(dueUs);
    return true;
  }

  #arm(dueUs: number): void {
    const leftMs = (dueUs - this.#deps.time.monotonicUs()) / 1000;
    this.#timer = this.#deps.time.setTimer(leftMs, () => {
      // A timer may be early, and the server said when.
      if (this.#deps.time.monotonicUs() < dueUs) this.#arm(dueUs);
      else this.#wake();
    });
  }

  /** The host may have asked for a longer pause meanwhile. From one that is cut off for failing nothing is to be had. */
  #wake(): void {
    this.#timer = undefined;
    const { host, role, call, deadlineUs } = this.#request;
    const denial = breakersOf(this.#deps.breakers).check({ host, role, resolver: call.resolver });
    if (denial?.reason === "retry-after" && denial.untilUs <= deadlineUs) {
      this.#arm(denial.untilUs);
      return;
    }
    if (denial !== undefined && this.deliverWithheld()) return;
    this.#request = this.#withDeadlineAsMaxWait();
    this.dispatch(this.#request);
  }

  /** Having waited for the server, a request is not sent away by the bound for newcomers; its deadline is its bound. */
  #withDeadlineAsMaxWait(): OutgoingRequest {
    const { call, deadlineUs } = this.#request;
    if (call.maxWaitMs !== undefined) return this.#request;
    const maxWaitMs = Math.max(0, (deadlineUs - this.#deps.time.monotonicUs()) / 1000);
    return { ...this.#request, call: { ...call, maxWaitMs, maxBreakerWaitMs: 0 } };
  }
}
