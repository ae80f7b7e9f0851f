import { randomBytes } from "node:crypto";
import type { Outcome } from "../core/breaker/classify.ts";
import { DeadlineExceededError, type RejectedError } from "../errors.ts";
import type { WaitParts } from "../limiter/entry-request.ts";
import { type GrantedWait, NO_WAIT } from "../limiter/granted-wait.ts";
import type { SafeCallTrace } from "./safe-call-trace.ts";
import type { CallerIdentity } from "./stages/caller-identity.ts";
import type { OutgoingRequest } from "./stages/stage.ts";

/**
 * How the cache was used. `off`: there is no cache, or it does not apply to this request. `offline`: no stored response,
 * and the request may not use the network. `disconnected`: the stored response must be revalidated, and the host cannot
 * be reached.
 */
export type CacheStatus = "off" | "hit" | "revalidated" | "stale" | "miss" | "coalesced" | "offline" | "disconnected";

/** Makes call ids unique among the processes that write to one file. */
const PROCESS_ID = randomBytes(6).toString("hex");
let callCount = 0;

/** What the stages record about a call, for the outer stages and for the events about it. */
export class CallRecord {
  /**
   * The call whose event shows the waits and attempts. For a coalesced request it is the call of its leader, otherwise this
   * call.
   */
  creditedCall: CallRecord = this;
  cacheStatus: CacheStatus = "off";
  /** The target of the last redirect that was followed; undefined without one. */
  finalHop: { readonly host: string; readonly path: string } | undefined = undefined;
  /** The trace of the call; undefined when it is not traced. */
  trace: SafeCallTrace | undefined = undefined;
  /** Number of attempts to send. */
  tries = 0;
  /** Number of requests sent: attempts that had a connection. */
  attempts = 0;
  /** The identification of the current attempt; undefined before the first one. */
  identity: CallerIdentity | undefined = undefined;
  /** Wall-clock time when the current attempt was written; undefined while it is queued or connecting. */
  sentMs: number | undefined = undefined;
  /** Time in the queue and for jitter, over all attempts, granted or not. */
  waitedMs = 0;
  /** The part of `waitedMs` before attempts. The rest ended without one: refused, aborted, or its grant was lost. */
  attemptWaitMs = 0;
  /** The part of `waitedMs` spent waiting for a concurrency slot. */
  slotWaitMs = 0;
  /** The part of `slotWaitMs` before attempts. */
  attemptSlotWaitMs = 0;
  /** The part of `waitedMs` spent waiting for an open circuit or a cooldown. */
  breakerWaitMs = 0;
  /** The longest wait before an attempt: it says which limit delayed the call most. */
  longestWait: GrantedWait | undefined = undefined;
  /** When the current attempt was queued, in monotonic microseconds; undefined while none is queued. */
  queuedSinceUs: number | undefined = undefined;
  /** Called when an attempt has to wait in the queue. Set by a coalesced request: not every caller of it may wait as long. */
  onWait: (() => void) | undefined = undefined;
  /** Outcome of the last attempt. */
  outcome: Outcome | undefined = undefined;
  /** Retry-After of the last attempt. */
  retryAfterMs: number | undefined = undefined;
  /** The refusal that was answered with a response of the hub (`refusals: "respond"`). */
  refusal: RejectedError | undefined = undefined;
  readonly #number = ++callCount;
  /** Made on first use: only events and traces contain it. */
  #callId: string | undefined;
  /** The part of the current wait that another call has been credited with. */
  #creditedMs = 0;
  /** The wait before the current attempt that this call was credited with, and its part for a slot. */
  #grantedMs = 0;
  #grantedSlotMs = 0;

  get callId(): string {
    this.#callId ??= `${PROCESS_ID}-${this.#number.toString(36)}`;
    return this.#callId;
  }

  /** An attempt has entered the queue. If it is refused, the record must not show the result of an earlier one. */
  queued(nowUs: number): void {
    this.settled(undefined, undefined);
    this.sentMs = undefined;
    this.queuedSinceUs = nowUs;
    this.creditedCall.queuedSinceUs = nowUs;
  }

  /** The request is being written. */
  sent(wallMs: number): void {
    this.sentMs = wallMs;
    this.creditedCall.sentMs = wallMs;
    this.creditedCall.attempts += 1;
  }

  /** The attempt has left the queue with a grant. */
  granted(wait: GrantedWait): void {
    const { creditedCall } = this;
    this.queuedSinceUs = undefined;
    creditedCall.#addWaits(wait.waitedMs, wait);
    if (wait.waitedMs > (creditedCall.longestWait?.waitedMs ?? 0)) creditedCall.longestWait = wait;
  }

  /** The attempt is passed to the network, after its jitter. */
  tried(jitterMs: number): void {
    const { creditedCall } = this;
    creditedCall.tries += 1;
    creditedCall.waitedMs += jitterMs;
    creditedCall.attemptWaitMs += jitterMs;
    creditedCall.#countGranted();
  }

  /** The attempt has waited for its jitter, but is not sent: it enters the queue again, or its deadline has passed. */
  jitterLost(jitterMs: number): void {
    const { creditedCall } = this;
    creditedCall.waitedMs += jitterMs;
    creditedCall.#forgetGranted();
  }

  /** The attempt has left the queue without a grant. */
  leftQueue(nowUs: number, parts: WaitParts): void {
    const { queuedSinceUs, creditedCall } = this;
    this.queuedSinceUs = undefined;
    if (queuedSinceUs === undefined) return;
    creditedCall.#addWaits((nowUs - queuedSinceUs) / 1000, parts);
    creditedCall.#forgetGranted();
  }

  /** The result of an attempt; undefined while it is not known. */
  settled(outcome: Outcome | undefined, retryAfterMs: number | undefined): void {
    this.outcome = outcome;
    this.retryAfterMs = retryAfterMs;
    this.creditedCall.outcome = outcome;
    this.creditedCall.retryAfterMs = retryAfterMs;
  }

  /**
   * The caller that led a coalesced request has left it. From now on `leader` is credited, if there is one. Each caller
   * is credited with the part of the wait in which it was the leader.
   */
  handOver(leader: CallRecord | undefined, nowUs: number): void {
    const { creditedCall: former, queuedSinceUs } = this;
    this.creditedCall = leader ?? this;
    former.#countGranted();
    if (queuedSinceUs === undefined) return;
    const waitedMs = (nowUs - queuedSinceUs) / 1000;
    if (former !== this) {
      former.#addWaits(waitedMs, NO_WAIT);
      former.#countGranted();
    }
    this.creditedCall.#creditedMs = waitedMs;
    this.creditedCall.queuedSinceUs = queuedSinceUs;
  }

  /** The attempt that this call waited for is sent, or another call is credited with it from now on. */
  #countGranted(): void {
    this.attemptWaitMs += this.#grantedMs;
    this.attemptSlotWaitMs += this.#grantedSlotMs;
    this.#forgetGranted();
  }

  #forgetGranted(): void {
    this.#grantedMs = 0;
    this.#grantedSlotMs = 0;
  }

  #addWaits(waitedMs: number, { slotWaitMs, breakerWaitMs }: WaitParts): void {
    this.queuedSinceUs = undefined;
    const ownMs = Math.max(0, waitedMs - this.#creditedMs);
    const ownSlotMs = Math.min(ownMs, slotWaitMs);
    this.#creditedMs = 0;
    this.waitedMs += ownMs;
    this.slotWaitMs += ownSlotMs;
    this.breakerWaitMs += Math.min(ownMs, breakerWaitMs);
    this.#grantedMs = ownMs;
    this.#grantedSlotMs = ownSlotMs;
  }
}

type DeadlineRequest = Pick<OutgoingRequest, "host" | "role" | "call" | "record" | "deadlineUs">;

/** The error of a call whose own deadline has passed; undefined before that, and for a call without `deadlineMs`. */
export function deadlineError(request: DeadlineRequest, nowUs: number): DeadlineExceededError | undefined {
  const { host, role, record, deadlineUs } = request;
  const { deadlineMs } = request.call;
  if (deadlineMs === undefined || nowUs < deadlineUs) return undefined;
  const { attempts, queuedSinceUs } = record;
  const waitedMs = record.waitedMs + (nowUs - (queuedSinceUs ?? nowUs)) / 1000;
  return new DeadlineExceededError({ host, role, deadlineMs, attempts, waitedMs });
}
