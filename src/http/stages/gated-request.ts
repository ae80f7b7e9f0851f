import { type Outcome, SUCCESS } from "../../core/breaker/classify.ts";
import type { BreakerRegistry } from "../../gate/breaker-registry.ts";
import type { Gate } from "../../gate/gate.ts";
import { breakersOf } from "../../gate/registry-breakers.ts";
import { type EarlierWait, earlierWaitOf, type QueuedCaller, type WaitParts } from "../../limiter/entry-request.ts";
import type { Grant, ServerFeedback } from "../../limiter/grant.ts";
import { NO_WAIT } from "../../limiter/granted-wait.ts";
import type { SentKeys } from "../../policy/identity.ts";
import type { Timer } from "../../time/time.ts";
import type { AttemptLog } from "../attempt-log.ts";
import { deadlineError } from "../call-record.ts";
import type { ReportedRequest, RequestTelemetry } from "../request-telemetry.ts";
import { outcomeOfAbort } from "./abort-outcome.ts";
import { type HostFeedback, settleCosts } from "./host-feedback.ts";
import type { OutgoingRequest, ResponseHead } from "./stage.ts";
import { WriteStamp, type WriteStampDeps } from "./write-stamp.ts";

export interface GatedRequestDeps extends WriteStampDeps {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly telemetry: RequestTelemetry;
}

/** The fields of a request that the gate and the events about it need. */
export type GatedFields = ReportedRequest & Pick<OutgoingRequest, "deadlineUs" | "signalSinceUs">;

const noWait = () => NO_WAIT;
/** The feedback of nearly every response. */
const NO_FEEDBACK: ServerFeedback = Object.freeze({ isThrottled: false });

/**
 * Takes one request through the gate, for every client. It waits for a grant and for the jitter of a trial call, reports
 * what the response says about the host, and releases the grant. The subclass sends the request. It reports when the
 * headers are written (`stamp`), when the response begins and when it ends.
 */
export abstract class GatedRequest<Request extends GatedFields, Deps extends GatedRequestDeps> implements QueuedCaller {
  protected readonly deps: Deps;
  protected readonly request: Request;
  /** Undefined while the request has no grant, and when it has ended. */
  protected grant: Grant | undefined;
  protected stamp: WriteStamp | undefined;
  /** Facts for the `http_attempt` event; undefined before the request is sent, after its end and without listeners. */
  protected log: AttemptLog | undefined;
  /** When the request was passed on with its grant, in monotonic microseconds; undefined before. */
  protected passedUs: number | undefined;
  /** Status of the response; undefined before its head has arrived. */
  protected status: number | undefined;
  /** Leaves the queue of the gate; undefined while not queued. */
  #leaveQueue: ((reason: unknown) => void) | undefined;
  /** What the wait in the queue was spent on. */
  #waitParts: () => WaitParts = noWait;
  #jitter: Timer | undefined;
  /** When the request first entered the gate, in monotonic microseconds. */
  #enteredUs = 0;
  /**
   * The waits of earlier passes: a cooldown that began during the jitter sends the request through the gate again. Undefined
   * on the first pass.
   */
  #earlierWait: EarlierWait | undefined;

  constructor(deps: Deps, request: Request) {
    this.deps = deps;
    this.request = request;
  }

  /** True when the caller has ended the request, so that a grant that comes now is released unused. */
  abstract readonly isOver: boolean;
  /** True when the deadline also bounds the wait in the queue: a request that cannot be sent in time is refused at once. */
  protected abstract readonly isBoundByDeadline: boolean;
  /** The keys that the request carries: they decide which limits apply. */
  protected abstract readonly sentKeys: SentKeys;
  /**
   * Sends the request. It has a grant.
   * @param nowUs in monotonic microseconds
   */
  protected abstract send(nowUs: number): void;
  /** The gate has refused the request, or it has left the queue, or its deadline has passed. It has no grant. */
  protected abstract refused(error: unknown): void;

  protected enter(): void {
    const nowUs = this.deps.time.monotonicUs();
    this.#enteredUs = nowUs;
    this.#earlierWait = undefined;
    this.#enterGate(nowUs);
  }

  #enterGate(nowUs: number): void {
    const { host, role, path, method, call, record } = this.request;
    record.queued(nowUs);
    this.#waitParts = noWait;
    const ownMs = call.maxWaitMs;
    // All bounds count from the first time that the request entered the gate.
    const leftMs = this.isBoundByDeadline ? Math.max(0, (this.request.deadlineUs - this.#enteredUs) / 1000) : undefined;
    const isDeadlineFirst = leftMs !== undefined && (ownMs === undefined || leftMs < ownMs);
    try {
      const entry = this.deps.gate.enter(
        {
          host,
          role,
          path,
          sentKeys: this.sentKeys,
          method,
          weight: call.weight,
          costs: call.costs,
          resolver: call.resolver,
          service: call.service,
          partition: call.partition,
          maxWaitMs: isDeadlineFirst ? leftMs : ownMs,
          maxWaitOption: isDeadlineFirst ? "deadlineMs" : "maxWaitMs",
          maxBreakerWaitMs: call.maxBreakerWaitMs,
          earlier: this.#earlierWait,
          caller: this,
        },
        nowUs,
      );
      // A promise keeps the caller's asynchronous context, whichever request frees the capacity.
      if (!(entry instanceof Promise)) this.#granted(entry, nowUs);
      else entry.then(grant => this.#granted(grant, this.deps.time.monotonicUs())).catch(error => this.#refused(error));
    } catch (error) {
      this.#refused(error);
    }
  }

  onWait(leaveQueue: (reason: unknown) => void, waitParts: () => WaitParts): void {
    this.#leaveQueue = leaveQueue;
    this.#waitParts = waitParts;
    this.request.record.onWait?.();
  }

  /** Records the wait at once, because the event of the call follows and contains it. */
  protected leaveQueue(reason: unknown): void {
    this.request.record.leftQueue(this.deps.time.monotonicUs(), this.#waitParts());
    this.#leaveQueue?.(reason);
  }

  #refused(error: unknown): void {
    this.request.record.leftQueue(this.deps.time.monotonicUs(), this.#waitParts());
    this.refused(error);
  }

  #granted(grant: Grant, nowUs: number): void {
    this.#leaveQueue = undefined;
    this.grant = grant;
    this.stamp = new WriteStamp(this.deps, grant);
    this.request.record.granted(grant.wait);
    // The caller has ended the request between the grant and this call.
    if (this.isOver) this.releaseGrant(false);
    else if (grant.jitterMs === 0) this.#sendInTime(0, nowUs);
    else this.#jitter = this.deps.time.setTimer(grant.jitterMs, () => this.#jitterEnded(grant.jitterMs));
  }

  #jitterEnded(jitterMs: number): void {
    try {
      this.#afterJitter(jitterMs);
    } catch (error) {
      // An agent of the client may throw. In a timer, the error would end the process.
      this.#refused(error);
    }
  }

  /** A trial call has waited for its jitter. A cooldown that began in the meantime sends it back to the gate. */
  #afterJitter(jitterMs: number): void {
    this.#jitter = undefined;
    const { host, path, role, call, record } = this.request;
    const { partition, resolver } = call;
    const nowUs = this.deps.time.monotonicUs();
    if (!breakersOf(this.deps.breakers).isStopped({ host, path, role, partition, resolver })) {
      this.#sendInTime(jitterMs, nowUs);
      return;
    }
    record.jitterLost(jitterMs);
    this.#earlierWait = earlierWaitOf(this.#enteredUs, nowUs, this.#earlierWait, this.grant?.wait);
    this.releaseGrant(false);
    this.#enterGate(nowUs);
  }

  /** Sends the request unless its deadline has passed: on a busy event loop, the timer of the deadline may be late. */
  #sendInTime(jitterMs: number, nowUs: number): void {
    const { call, record } = this.request;
    const deadlineExceeded = call.deadlineMs === undefined ? undefined : deadlineError(this.request, nowUs);
    if (deadlineExceeded === undefined) {
      this.passedUs = nowUs;
      record.tried(jitterMs);
      this.send(nowUs);
      return;
    }
    record.jitterLost(jitterMs);
    this.releaseGrant(false);
    this.refused(deadlineExceeded);
  }

  /** A failure and its cooldown are reported at once, every other response only when its body is complete. */
  protected reportHead(head: ResponseHead, { outcome, retryAfterMs, announced }: HostFeedback): void {
    const { grant } = this;
    const { record, call } = this.request;
    record.settled(outcome, retryAfterMs);
    if (grant === undefined) return;
    settleCosts(grant, head, call.settleCosts);
    const isThrottled = outcome.kind === "failure" && outcome.throttled;
    const isPlain = !isThrottled && retryAfterMs === undefined && announced === undefined;
    grant.recordResponse(isPlain ? NO_FEEDBACK : { status: head.status, isThrottled, retryAfterMs, announced });
    if (outcome.kind === "failure") grant.report({ outcome, status: head.status, retryAfterMs });
    else grant.answered();
  }

  /** The outcome of a request that its caller has aborted; undefined when it was not sent. */
  protected outcomeOfAbort(reason: unknown, isUnreached: boolean): Outcome | undefined {
    const { record, startedUs, signalSinceUs = startedUs } = this.request;
    if (this.status !== undefined) return record.outcome ?? SUCCESS;
    if (this.passedUs === undefined) return undefined;
    const nowUs = this.deps.time.monotonicUs();
    return outcomeOfAbort(reason, {
      silentMs: (nowUs - this.passedUs) / 1000,
      timeoutMs: (nowUs - signalSinceUs) / 1000,
      isUnreached,
    });
  }

  /** Emits the event of the attempt, once. Call it before the caller is notified: the event of the call must come later. */
  protected endLog(outcome: Outcome | undefined, error: unknown, isAborted: boolean, isUnprocessed = false): void {
    const { log } = this;
    this.log = undefined;
    if (log === undefined) return;
    const { outcome: reported, retryAfterMs } = this.request.record;
    this.deps.telemetry.emitAttempt(log, retryAfterMs, {
      // A failure in the head of a response was reported when the head arrived.
      outcome: outcome !== undefined && this.status !== undefined ? (reported ?? outcome) : outcome,
      error,
      isAborted,
      isUnprocessed,
    });
  }

  /**
   * Frees the slots of the grant, and its units too if nothing was written.
   * @param isCut true when the other side has ended the connection
   */
  protected releaseGrant(isCut: boolean): void {
    this.#jitter?.cancel();
    this.#jitter = undefined;
    const { stamp } = this;
    this.grant = undefined;
    this.stamp = undefined;
    stamp?.release(isCut);
  }
}
