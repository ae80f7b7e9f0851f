import type { Attributes, Context, Span, Tracer as SpanMaker } from "@opentelemetry/api";
import type { AttemptTrace, CallTrace, StartedAttempt, StartedCall, Tracer } from "../../http/tracing.ts";
import { callOutcomeOf } from "../call-outcome.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import type { OpenTelemetry } from "./load-opentelemetry.ts";

/** The spans of a call that has not ended. */
interface OpenCall {
  readonly callId: string;
  readonly span: Span;
  readonly attempts: Map<number, Span>;
  hasEnded: boolean;
}

const NO_HEADERS: readonly string[] = [];
const NO_SPAN: AttemptTrace = { headers: NO_HEADERS, movedTo: () => undefined, dropped: () => undefined };
/** The methods that the semantic conventions list. `http.request.method` must be `_OTHER` for any other method. */
const METHODS: ReadonlySet<string> = new Set("CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE".split(" "));

/**
 * Makes a span for each call, with one child for each attempt. Spans begin when the hub says so, in the context of the
 * caller, and end with the events `http_attempt` and `http_request`, from which all their attributes are taken.
 */
export class OtelSpans implements Tracer {
  readonly #api: OpenTelemetry;
  readonly #maker: SpanMaker;
  readonly #propagates: boolean;
  /** One entry per call that is running: bounded by the calls of the hub. */
  readonly #calls = new Map<string, OpenCall>();
  /** No event ends a span any more. */
  #isClosed = false;

  constructor(api: OpenTelemetry, propagates: boolean) {
    this.#api = api;
    this.#maker = api.trace.getTracer("docstokg");
    this.#propagates = propagates;
  }

  callStarted({ callId, method, host, isBackground }: StartedCall): CallTrace | undefined {
    if (this.#isClosed) return undefined;
    const { context, trace, SpanKind } = this.#api;
    const parent = context.active();
    const attributes = { ...methodAttributes(method), "server.address": host, "docstokg.background": isBackground };
    const span = this.#maker.startSpan(callName(method), { kind: SpanKind.INTERNAL, attributes }, parent);
    const call: OpenCall = { callId, span, attempts: new Map(), hasEnded: false };
    this.#calls.set(callId, call);
    const within = trace.setSpan(parent, span);
    return { attemptStarted: attempt => this.#attemptStarted(call, within, attempt) };
  }

  take(event: TelemetryEvent): void {
    if (event.event_type === "http_attempt") this.#endAttempt(event);
    else if (event.event_type === "http_request") this.#endCall(event);
  }

  /** Ends the spans of the calls that are running: the events of their end will not arrive. */
  close(): void {
    this.#isClosed = true;
    for (const { span, attempts, hasEnded } of this.#calls.values()) {
      for (const attempt of attempts.values()) attempt.end();
      if (!hasEnded) span.end();
    }
    this.#calls.clear();
  }

  #attemptStarted(call: OpenCall, within: Context, { attempt, method, origin }: StartedAttempt): AttemptTrace {
    if (this.#isClosed) return NO_SPAN;
    const { trace, SpanKind } = this.#api;
    const attributes = { ...methodAttributes(method), ...serverAttributes(origin) };
    const span = this.#maker.startSpan(attemptName(method), { kind: SpanKind.CLIENT, attributes }, within);
    call.attempts.set(attempt, span);
    return {
      headers: this.#propagates ? this.#headers(trace.setSpan(within, span), span) : NO_HEADERS,
      movedTo: (callId, number) => {
        call.attempts.delete(attempt);
        this.#calls.get(callId)?.attempts.set(number, span);
        this.#forgetEnded(call);
      },
      dropped: () => {
        call.attempts.delete(attempt);
        this.#forgetEnded(call);
      },
    };
  }

  /** The headers of the registered propagator; if the program has registered none, those of W3C Trace Context. */
  #headers(context: Context, span: Span): readonly string[] {
    const { propagation, isSpanContextValid } = this.#api;
    const own = span.spanContext();
    if (!isSpanContextValid(own)) return NO_HEADERS;
    const headers: string[] = [];
    if (propagation.fields().length > 0) {
      const set = (_: unknown, name: string, value: string) => void headers.push(name.toLowerCase(), value);
      propagation.inject(context, headers, { set });
      return headers;
    }
    headers.push("traceparent", `00-${own.traceId}-${own.spanId}-${own.traceFlags.toString(16).padStart(2, "0")}`);
    const state = own.traceState?.serialize() ?? "";
    if (state !== "") headers.push("tracestate", state);
    return headers;
  }

  #endAttempt(event: EventOf<"http_attempt">): void {
    const call = this.#calls.get(event.call_id);
    const span = call?.attempts.get(event.attempt);
    if (call === undefined || span === undefined) return;
    call.attempts.delete(event.attempt);
    addWaits(call.span, event);
    span.setAttributes(attemptAttributes(event));
    const error = errorTypeOf(event);
    if (error !== undefined) this.#fail(span, error, event.error);
    span.end();
    this.#forgetEnded(call);
  }

  #endCall(event: EventOf<"http_request">): void {
    const call = this.#calls.get(event.call_id);
    // The sink began to listen in the middle of the call, or gets events of a file: the span is made now.
    const span = call?.span ?? this.#pastCall(event);
    const outcome = callOutcomeOf(event);
    if (event.unsent_wait_ms > 0) addWait(span, "unsent", event.unsent_wait_ms, event.ts);
    span.setAttributes(callAttributes(event, outcome));
    if (outcome === "failed" || outcome === "throttled" || outcome === "refused")
      this.#fail(span, event.error ?? String(event.status), event.error);
    if (call === undefined) span.end(event.ts);
    else {
      span.end();
      call.hasEnded = true;
      this.#forgetEnded(call);
    }
  }

  #pastCall({ method, ts, elapsed_ms }: EventOf<"http_request">): Span {
    const { context, SpanKind } = this.#api;
    const options = { kind: SpanKind.INTERNAL, startTime: ts - elapsed_ms, attributes: methodAttributes(method) };
    return this.#maker.startSpan(callName(method), options, context.active());
  }

  #fail(span: Span, type: string, message: string | undefined): void {
    const { SpanStatusCode } = this.#api;
    span.setAttribute("error.type", type);
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
  }

  /** An attempt outlives its call when a coalesced request is handed over to another caller. */
  #forgetEnded({ callId, hasEnded, attempts }: OpenCall): void {
    if (hasEnded && attempts.size === 0) this.#calls.delete(callId);
  }
}

function callName(method: string): string {
  return `docstokg ${attemptName(method)}`;
}

function attemptName(method: string): string {
  return METHODS.has(method) ? method : "HTTP";
}

function methodAttributes(method: string): Attributes {
  if (METHODS.has(method)) return { "http.request.method": method };
  return { "http.request.method": "_OTHER", "http.request.method_original": method };
}

/** The path may be personal and the query may hold a key: `url.full` shows neither. */
function serverAttributes(origin: string): Attributes {
  const { protocol, hostname, port } = new URL(origin);
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    "url.full": `${origin}/REDACTED`,
  };
}

/** 4xx and 5xx are errors of a client span. An abort by the caller is not an error. */
function errorTypeOf({ status, error, outcome }: EventOf<"http_attempt">): string | undefined {
  if (status !== undefined && status >= 400) return String(status);
  return outcome === "aborted" ? undefined : error;
}

function attemptAttributes(event: EventOf<"http_attempt">): Attributes {
  const { status, attempt, resolver } = event;
  return {
    ...(status !== undefined && { "http.response.status_code": status }),
    ...(attempt > 1 && { "http.request.resend_count": attempt - 1 }),
    ...(resolver !== undefined && { "docstokg.resolver": resolver }),
    "http.request.body.size": event.request_bytes,
    "http.response.body.size": event.response_bytes,
    "docstokg.cause": event.cause,
    "docstokg.outcome": event.outcome,
    "docstokg.key": event.key,
    "docstokg.role": event.role,
    "docstokg.connection": event.connection,
    ...(event.breaker_recorded !== undefined && { "docstokg.breaker_recorded": event.breaker_recorded }),
  };
}

function callAttributes(event: EventOf<"http_request">, outcome: string): Attributes {
  const { status, resolver, host, final_host } = event;
  return {
    "server.address": host,
    ...(final_host !== host && { "docstokg.final_host": final_host }),
    ...(status !== undefined && { "http.response.status_code": status }),
    ...(resolver !== undefined && { "docstokg.resolver": resolver }),
    "docstokg.role": event.role,
    "docstokg.outcome": outcome,
    "docstokg.attempts": event.attempts,
    "docstokg.from_cache": event.from_cache,
    "docstokg.rate_delay_ms": event.rate_delay_ms,
    "docstokg.breaker_host_state": event.breaker_host_state,
    "docstokg.run_id": event.run_id,
    "docstokg.config_hash": event.config_hash,
    "docstokg.url_hash": event.url_hash,
  };
}

/** Adds the waits before an attempt to the call's span, as events at the start of the attempt. */
function addWaits(span: Span, event: EventOf<"http_attempt">): void {
  const startedMs = event.ts - event.elapsed_ms;
  addWait(span, "retry", event.retry_wait_ms, startedMs);
  addWait(span, "breaker", event.breaker_wait_ms, startedMs);
  addWait(span, "rate", event.rate_wait_ms, startedMs);
  addWait(span, "slot", event.slot_wait_ms, startedMs);
  addWait(span, "jitter", event.jitter_wait_ms, startedMs);
}

function addWait(span: Span, reason: string, ms: number, atMs: number): void {
  if (ms > 0) span.addEvent("docstokg.wait", { "docstokg.wait.reason": reason, "docstokg.wait.ms": ms }, atMs);
}
