import type { ReportedRequest } from "./request-telemetry.ts";
import type { Tracer } from "./tracing.ts";

/** The tracers of a hub's listeners. The first one traces; the others take its place when it is removed. */
export class Tracers {
  #tracers: readonly Tracer[] = [];

  /** Returns a function that removes the tracer. */
  add(tracer: Tracer): () => void {
    this.#tracers = [...this.#tracers, tracer];
    return () => {
      this.#tracers = this.#tracers.filter(other => other !== tracer);
    };
  }

  /** Begins the trace of a call. Must be called in the asynchronous context of its caller. */
  start({ record, method, host, origin, cause }: ReportedRequest): void {
    const [tracer] = this.#tracers;
    if (tracer === undefined) return;
    const { callId } = record;
    record.trace = tracer.callStarted({ callId, method, host, origin, isBackground: cause === "refresh" });
  }
}
