import type { Outcome } from "../core/breaker/classify.ts";
import { textHash } from "../core/text/text-hash.ts";
import { decidedByText } from "../errors.ts";
import type { GrantedWait } from "../limiter/granted-wait.ts";
import type { Time } from "../time/time.ts";
import type { CallRecord } from "./call-record.ts";
import { codeOf } from "./error-code.ts";
import type { AttemptCause, AttemptOutcome, HttpEvent } from "./http-events.ts";
import type { ReportedRequest } from "./request-telemetry.ts";
import { statusOutcome } from "./status-outcome.ts";
import type { AttemptTrace } from "./tracing.ts";

/** The grant of an attempt, with the waits before it. `Grant` has all of these fields. */
export interface AttemptGrant {
  /** The key whose budget was charged. */
  readonly host: string;
  /** The host or service whose cooldowns hold the attempt back; undefined without breakers. */
  readonly cooldownKey: string | undefined;
  readonly isProbe: boolean;
  readonly wait: GrantedWait;
  readonly jitterMs: number;
}

type AttemptEvent = HttpEvent & { readonly event_type: "http_attempt" };

/** How an attempt ended. */
export interface AttemptEnd {
  /** What was reported to the breaker; undefined for nothing. */
  readonly outcome: Outcome | undefined;
  /** Undefined when the response was complete. */
  readonly error: unknown;
  readonly isAborted: boolean;
  readonly isUnprocessed: boolean;
}

/** Collects the facts of one attempt for its `http_attempt` event. Made only while a listener wants this event. */
export class AttemptLog {
  readonly #request: ReportedRequest;
  readonly #time: Time;
  readonly #grant: AttemptGrant;
  readonly #cause: AttemptCause;
  readonly #trace: AttemptTrace | undefined;
  #creditedCall: CallRecord;
  #number: number;
  readonly #dispatchedUs: number;
  #startedUs: number | undefined;
  #headUs: number | undefined;
  #isNewConnection = false;
  #status: number | undefined;
  #requestBytes = 0;
  #responseBytes = 0;

  constructor(
    request: ReportedRequest,
    time: Time,
    grant: AttemptGrant,
    isResent: boolean,
    trace: AttemptTrace | undefined,
    dispatchedUs: number,
  ) {
    this.#trace = trace;
    this.#request = request;
    this.#time = time;
    this.#grant = grant;
    this.#cause = grant.isProbe ? "probe" : isResent ? "retry" : request.cause;
    // A coalesced request may be handed over to another call before this attempt ends. The attempt stays with the call
    // that was credited when it was sent.
    this.#creditedCall = request.record.creditedCall;
    this.#number = this.#creditedCall.tries;
    this.#dispatchedUs = dispatchedUs;
  }

  /** The request is being written. */
  started(isNewConnection: boolean): void {
    this.#startedUs = this.#time.monotonicUs();
    this.#isNewConnection = isNewConnection;
    const { creditedCall } = this.#request.record;
    if (creditedCall === this.#creditedCall) return;
    creditedCall.tries += 1;
    this.#creditedCall = creditedCall;
    this.#number = creditedCall.tries;
    this.#trace?.movedTo(creditedCall.callId, creditedCall.tries);
  }

  bodySent(bytes: number): void {
    this.#requestBytes += bytes;
  }

  head(status: number): void {
    this.#headUs = this.#time.monotonicUs();
    this.#status = status;
  }

  received(bytes: number): void {
    this.#responseBytes += bytes;
  }

  endEvent({ outcome, error, isAborted, isUnprocessed }: AttemptEnd, retryAfterMs: number | undefined): AttemptEvent {
    const { host, role, method, call } = this.#request;
    const { wait, jitterMs, host: key, cooldownKey } = this.#grant;
    const { waitedMs, slotWaitMs, breakerWaitMs, decidedBy } = wait;
    const { connect_ms, first_byte_ms } = this.#timings();
    const event = {
      event_type: "http_attempt",
      call_id: this.#creditedCall.callId,
      attempt: this.#number,
      cause: this.#cause,
      host,
      key,
      cooldown_key: cooldownKey,
      role,
      resolver: call.resolver,
      partition: call.partition === undefined ? undefined : textHash(call.partition),
      method,
      rate_wait_ms: Math.max(0, waitedMs - slotWaitMs - breakerWaitMs),
      slot_wait_ms: slotWaitMs,
      breaker_wait_ms: breakerWaitMs,
      jitter_wait_ms: jitterMs,
      retry_wait_ms: this.#request.retryDelayMs,
      connection: this.#startedUs === undefined ? "none" : this.#isNewConnection ? "new" : "reused",
      status: this.#status,
      error: error === undefined ? undefined : codeOf(error),
      outcome: isUnprocessed ? "unprocessed" : this.#outcome(error, isAborted),
      breaker_recorded: outcome?.kind,
      retry_after_s: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
      request_bytes: this.#requestBytes,
      response_bytes: this.#responseBytes,
      connect_ms,
      first_byte_ms,
      elapsed_ms: (this.#time.monotonicUs() - this.#dispatchedUs) / 1000,
    } as const;
    return decidedBy === undefined ? event : { ...event, decided_by: decidedByText(decidedBy) };
  }

  #timings() {
    const startedUs = this.#startedUs;
    return {
      connect_ms: startedUs === undefined ? undefined : (startedUs - this.#dispatchedUs) / 1000,
      first_byte_ms:
        startedUs === undefined || this.#headUs === undefined ? undefined : (this.#headUs - startedUs) / 1000,
    };
  }

  /** A failure status decides, also when the caller aborted the body or its rest did not arrive. */
  #outcome(error: unknown, isAborted: boolean): AttemptOutcome {
    const byStatus = this.#status === undefined ? "answered" : statusOutcome(this.#status);
    if (byStatus !== "answered") return byStatus;
    if (isAborted) return "aborted";
    return error === undefined ? "answered" : "failed";
  }
}
