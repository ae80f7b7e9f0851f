import type { TelemetryEvent } from "../events.ts";
import type { OpenTelemetry } from "./load-opentelemetry.ts";

/** Bounds the memory if the last events of calls do not arrive. The oldest call is forgotten first. */
const CALLS_MAX = 10_000;
const SAMPLED = 1;

/** The labels of an exemplar, as OpenMetrics and Grafana name them. */
export interface ExemplarLabels {
  readonly trace_id: string;
  readonly span_id: string;
}

/**
 * The trace of each call: that of the span that was active when the call began. Events arrive later, in the context of a
 * connection, where another span may be active. A trace that is not sampled is stored nowhere, and gives no exemplar.
 */
export class CallExemplars {
  readonly #api: OpenTelemetry;
  readonly #calls = new Map<string, ExemplarLabels>();

  constructor(api: OpenTelemetry) {
    this.#api = api;
  }

  /** To be called in the context of the caller. */
  callStarted(callId: string): void {
    const context = this.#api.trace.getActiveSpan()?.spanContext();
    if (context === undefined || !this.#api.isSpanContextValid(context)) return;
    if ((context.traceFlags & SAMPLED) === 0) return;
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size < CALLS_MAX) break;
      this.#calls.delete(oldest);
    }
    this.#calls.set(callId, { trace_id: context.traceId, span_id: context.spanId });
  }

  /** Undefined for an event of no call, or of a call without a trace. The last event of a call is `http_request`. */
  of(event: TelemetryEvent): ExemplarLabels | undefined {
    if (event.event_type !== "http_attempt" && event.event_type !== "http_request") return undefined;
    const found = this.#calls.get(event.call_id);
    if (event.event_type === "http_request") this.#calls.delete(event.call_id);
    return found;
  }
}
