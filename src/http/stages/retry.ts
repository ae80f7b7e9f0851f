import type { BreakerRegistry } from "../../breaker/breaker-registry.ts";
import { type BackoffPolicy, backoffMs } from "../../core/breaker/backoff.ts";
import { RejectedError } from "../../errors.ts";
import type { Time, Timer } from "../../time/time.ts";
import { isReplayable } from "./replayable.ts";
import { Relay } from "./resending-request.ts";
import type { RetryBudget } from "./retry-budget.ts";
import type { Outgoing, ResponseHead, Send, Sink } from "./stage.ts";

export interface RetryPolicy extends BackoffPolicy {
  /** Attempts in all, the first included. */
  readonly attempts: number;
}

export interface RetryRoom {
  readonly policy: RetryPolicy;
  readonly budget: RetryBudget;
  readonly breakers: BreakerRegistry;
  readonly time: Time;
  /** In [0, 1). */
  readonly random: () => number;
  readonly retrying: (request: Outgoing, delayMs: number, status: number | undefined, error: unknown) => void;
}

/**
 * Sends again what has failed through no fault of the request (law B7). Each attempt passes the gate for itself, and
 * none begins before the server said, after the deadline, or beyond the host's budget. What we refused ourselves is
 * never tried again. When nothing more is tried, the caller gets the last answer as it came.
 */
export function retrying(room: RetryRoom, next: Send): Send {
  return (request, sink) => {
    room.budget.earn(request.host);
    const mayRepeat = room.policy.attempts > 1 && !request.isSingle && isReplayable(request);
    return mayRepeat ? new Retrying(room, next, request, sink) : next(request, sink);
  };
}

class Retrying extends Relay {
  readonly #room: RetryRoom;
  #request: Outgoing;
  #timer: Timer | undefined;
  #failed = 0;

  constructor(room: RetryRoom, next: Send, request: Outgoing, sink: Sink) {
    super(next, sink);
    this.#room = room;
    this.#request = request;
    this.dispatch(request);
  }

  override abort(reason: unknown): void {
    this.#timer?.cancel();
    super.abort(reason);
  }

  protected keeps({ status }: ResponseHead): boolean {
    return this.#repeats(status, undefined);
  }

  protected keepsFailure(error: unknown): boolean {
    // What we refuse ourselves is no answer where there was one.
    if (error instanceof RejectedError && this.replayKept()) return true;
    return this.#repeats(undefined, error);
  }

  protected dropped(): void {
    // The next attempt waits for its timer, not for this.
  }

  /** True when another attempt is on its way. */
  #repeats(status: number | undefined, error: unknown): boolean {
    const { outcome, retryAfterMs } = this.#request.record;
    if (outcome?.kind !== "failure" || this.isOver) return false;
    const { policy, budget, breakers, time, random } = this.#room;
    const { host, role, call } = this.#request;
    this.#failed += 1;
    if (this.#failed >= policy.attempts) return false;
    const nowUs = time.monotonicUs();
    let delayMs = backoffMs(policy, this.#failed, random(), retryAfterMs);
    const denial = breakers.check({ host, role, resolver: call.resolver });
    if (denial !== undefined) {
      // A host that asked for a pause is waited for; from one that is cut off for failing, the caller gets what it said.
      if (!outcome.throttled || denial.reason === "failures") return false;
      delayMs = Math.max(delayMs, denial.remainingMs);
    }
    const dueUs = nowUs + delayMs * 1000;
    if (dueUs > this.#request.deadlineUs || !budget.spend(host)) return false;
    this.#request.record.sentMs = undefined;
    this.#room.retrying(this.#request, delayMs, status, error);
    this.#arm(dueUs);
    return true;
  }

  #arm(dueUs: number): void {
    const leftMs = (dueUs - this.#room.time.monotonicUs()) / 1000;
    this.#timer = this.#room.time.setTimer(leftMs, () => {
      // A timer may be early, and the server said when.
      if (this.#room.time.monotonicUs() < dueUs) this.#arm(dueUs);
      else this.#wake();
    });
  }

  /** The host may have asked for a longer pause meanwhile. From one that is cut off for failing nothing is to be had. */
  #wake(): void {
    this.#timer = undefined;
    const { host, role, call, deadlineUs } = this.#request;
    const denial = this.#room.breakers.check({ host, role, resolver: call.resolver });
    if (denial?.reason === "retry-after" && denial.untilUs <= deadlineUs) {
      this.#arm(denial.untilUs);
      return;
    }
    if (denial !== undefined && this.replayKept()) return;
    this.#request = this.#patient();
    this.dispatch(this.#request);
  }

  /** Having waited for the server, a request is not sent away by the bound for newcomers; its deadline is its bound. */
  #patient(): Outgoing {
    const { call, deadlineUs } = this.#request;
    if (call.maxWaitMs !== undefined) return this.#request;
    const maxWaitMs = Math.max(0, (deadlineUs - this.#room.time.monotonicUs()) / 1000);
    return { ...this.#request, call: { ...call, maxWaitMs, maxCutOffMs: 0 } };
  }
}
