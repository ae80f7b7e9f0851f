import { redactedText } from "../core/text/redaction.ts";
import { textHash } from "../core/text/text-hash.ts";
import { BreakerOpenError, decidedByText, RejectedError, type StoreError } from "../errors.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import { NO_WAIT } from "../limiter/granted-wait.ts";
import type { Listeners } from "../listeners.ts";
import type { Time } from "../time/time.ts";
import { type AttemptEnd, type AttemptGrant, AttemptLog } from "./attempt-log.ts";
import { codeOf } from "./error-code.ts";
import type { HttpEvent } from "./http-events.ts";
import type { OutgoingRequest } from "./stages/stage.ts";
import type { AttemptTrace } from "./tracing.ts";

/** The fields of a request that events contain. */
export type ReportedRequest = Pick<
  OutgoingRequest,
  "origin" | "host" | "path" | "role" | "method" | "call" | "startedUs" | "record" | "cause" | "retryDelayMs"
>;

/** How a call ended. */
export interface CallEnd {
  /** Undefined when there was no response. */
  readonly status: number | undefined;
  /** Undefined when the response was complete. */
  readonly error: unknown;
  /** The caller ended the call, or the hub was destroyed. */
  readonly isAborted: boolean;
}

/** Emits the events about requests. Without a listener, which is the usual case, no event object is built. */
export class RequestTelemetry {
  readonly #listeners: Listeners<HttpEvent>;
  readonly #breakers: BreakerRegistry;
  readonly #time: Time;

  constructor(listeners: Listeners<HttpEvent>, breakers: BreakerRegistry, time: Time) {
    this.#time = time;
    this.#listeners = listeners;
    this.#breakers = breakers;
  }

  emitRequest(request: ReportedRequest, end: CallEnd): void {
    // This check is a method of its own, so that V8 inlines it and does not build `end` without a listener.
    if (this.#listeners.hasListener("http_request")) this.#emitRequest(request, end);
  }

  #emitRequest(request: ReportedRequest, { status, error, isAborted }: CallEnd): void {
    const { host, role, method, record, call, startedUs, cause } = request;
    const { cacheStatus, attempts, retryAfterMs, waitedMs, outcome, finalHop = request } = record;
    const { decidedBy } = error instanceof RejectedError ? error : (record.longestWait ?? NO_WAIT);
    const { state, remainingMs } = this.#breakers.briefState(finalHop.host, finalHop.path, call.partition);
    const event = {
      event_type: "http_request",
      call_id: record.callId,
      host,
      final_host: finalHop.host,
      role,
      resolver: call.resolver,
      partition: call.partition === undefined ? undefined : textHash(call.partition),
      method,
      status,
      error: error === undefined ? undefined : codeOf(error),
      aborted: isAborted,
      background: cause === "refresh",
      from_cache: cacheStatus === "hit" || cacheStatus === "stale" || cacheStatus === "revalidated",
      revalidated: cacheStatus === "revalidated",
      stale: cacheStatus === "stale",
      coalesced: cacheStatus === "coalesced",
      attempts,
      retry_after_s: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
      rate_delay_ms: waitedMs,
      rate_concurrency_wait_ms: record.slotWaitMs,
      breaker_wait_ms: record.breakerWaitMs,
      unsent_wait_ms: Math.max(0, waitedMs - record.attemptWaitMs),
      unsent_slot_wait_ms: Math.max(0, record.slotWaitMs - record.attemptSlotWaitMs),
      breaker_host_state: state,
      breaker_resolver_state: call.resolver === undefined ? undefined : this.#breakers.resolverState(call.resolver),
      breaker_open_remaining_ms: error instanceof BreakerOpenError ? error.cooldownRemainingMs : remainingMs,
      breaker_recorded: outcome?.kind,
      elapsed_ms: (this.#time.monotonicUs() - startedUs) / 1000,
      url_hash: urlHash(request),
    } as const;
    // A spread in the middle of the literal would make V8 add the fields after it one by one.
    this.#listeners.emit(decidedBy === undefined ? event : { ...event, decided_by: decidedByText(decidedBy) });
  }

  /** Undefined without a listener. */
  beginAttempt(
    request: ReportedRequest,
    grant: AttemptGrant,
    isResent: boolean,
    trace: AttemptTrace | undefined,
    dispatchedUs: number,
  ): AttemptLog | undefined {
    if (!this.#listeners.hasListener("http_attempt")) return undefined;
    return new AttemptLog(request, this.#time, grant, isResent, trace, dispatchedUs);
  }

  emitAttempt(log: AttemptLog, retryAfterMs: number | undefined, end: AttemptEnd): void {
    this.#listeners.emit(log.endEvent(end, retryAfterMs));
  }

  emitRetry(
    { host, role, record }: OutgoingRequest,
    delay_ms: number,
    status: number | undefined,
    error: unknown,
  ): void {
    if (!this.#listeners.hasListener("http_retry")) return;
    this.#listeners.emit({
      event_type: "http_retry",
      call_id: record.creditedCall.callId,
      host,
      role,
      attempt: record.creditedCall.tries,
      delay_ms,
      status,
      error: error === undefined ? undefined : codeOf(error),
    });
  }

  /** Becomes a process warning when there is no listener: a cache that stores nothing must not stay unnoticed. */
  emitCacheTrouble(error: StoreError): void {
    if (this.#listeners.hasListener("cache_trouble"))
      this.#listeners.emit({ event_type: "cache_trouble", message: error.message });
    else process.emitWarning(redactedText(error.message), "DocstokgWarning");
  }

  emitUnreadBody({ host, role }: ReportedRequest, unread_ms: number): void {
    this.#listeners.emit({ event_type: "body_unread", host, role, unread_ms });
  }
}

function urlHash({ origin, path }: ReportedRequest): string {
  return textHash(`${origin}${path}`);
}
