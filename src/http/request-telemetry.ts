import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import { textHash } from "../core/text/text-hash.ts";
import { BreakerOpenError, type StoreError } from "../errors.ts";
import type { Listeners } from "../listeners.ts";
import type { Time } from "../time/time.ts";
import type { HttpEvent } from "./http-events.ts";
import type { OutgoingRequest } from "./stages/stage.ts";

/** What events say about a request. */
export type ReportedRequest = Pick<
  OutgoingRequest,
  "origin" | "host" | "path" | "role" | "method" | "call" | "startedUs" | "record"
>;

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

  emitRequest(request: ReportedRequest, status: number | undefined, error: unknown): void {
    if (this.#listeners.isEmpty) return;
    const { host, path, role, method, record, call, startedUs } = request;
    const { cacheStatus, attempts, retryAfterMs, waitedMs, slotWaitMs, outcome } = record;
    const { state, remainingMs } = this.#breakers.briefState(host, path);
    this.#listeners.emit({
      event_type: "http_request",
      host,
      role,
      resolver: call.resolver,
      partition: call.partition === undefined ? undefined : textHash(call.partition),
      method,
      status,
      error: error === undefined ? undefined : codeOf(error),
      from_cache: cacheStatus === "hit" || cacheStatus === "stale" || cacheStatus === "revalidated",
      revalidated: cacheStatus === "revalidated",
      stale: cacheStatus === "stale",
      coalesced: cacheStatus === "coalesced",
      attempts,
      retry_after_s: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
      rate_delay_ms: waitedMs,
      rate_concurrency_wait_ms: slotWaitMs,
      breaker_host_state: state,
      breaker_resolver_state: call.resolver === undefined ? undefined : this.#breakers.resolverState(call.resolver),
      breaker_open_remaining_ms: error instanceof BreakerOpenError ? error.cooldownRemainingMs : remainingMs,
      breaker_recorded: outcome?.kind,
      elapsed_ms: (this.#time.monotonicUs() - startedUs) / 1000,
      url_hash: urlHash(request),
    });
  }

  emitRetry(
    { host, role, record }: OutgoingRequest,
    delay_ms: number,
    status: number | undefined,
    error: unknown,
  ): void {
    if (this.#listeners.isEmpty) return;
    const code = error === undefined ? undefined : codeOf(error);
    this.#listeners.emit({
      event_type: "http_retry",
      host,
      role,
      attempt: record.attempts,
      delay_ms,
      status,
      error: code,
    });
  }

  /** Becomes a process warning when there is no listener: a cache that stores nothing must not stay unnoticed. */
  emitCacheTrouble(error: StoreError): void {
    if (this.#listeners.isEmpty) process.emitWarning(error.message, "DocstokgWarning");
    else this.#listeners.emit({ event_type: "cache_trouble", message: error.message });
  }

  emitUnreadBody({ host, role }: ReportedRequest, unread_ms: number): void {
    this.#listeners.emit({ event_type: "body_unread", host, role, unread_ms });
  }
}

function urlHash({ origin, path }: ReportedRequest): string {
  return textHash(`${origin}${path}`);
}

/** The code or name of an error. Not its message, which may quote a URL. */
function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return typeof error;
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" ? name : "Error";
}
