import { redactedText } from "../core/text/redaction.ts";
import { messageOf } from "../errors.ts";
import type { ReportedRequest } from "./request-telemetry.ts";
import { SafeCallTrace } from "./safe-call-trace.ts";
import type { Tracer } from "./tracing.ts";

/** The tracers of a hub's listeners. The first one traces; the others take its place when it is removed. */
export class Tracers {
  #tracers: readonly Tracer[] = [];
  readonly #broken = new WeakSet<Tracer>();

  /** Returns a function that removes the tracer. A tracer that was added already is not added again. */
  add(tracer: Tracer): () => void {
    if (!this.#tracers.includes(tracer)) this.#tracers = [...this.#tracers, tracer];
    return () => {
      this.#tracers = this.#tracers.filter(other => other !== tracer);
    };
  }

  /**
   * Begins the trace of a call. Must be called in the asynchronous context of its caller. A tracer that throws has no
   * effect on the call.
   */
  start({ record, method, host, origin, cause }: ReportedRequest): void {
    const [tracer] = this.#tracers;
    if (tracer === undefined) return;
    const { callId } = record;
    const onError = (error: unknown) => this.#warn(tracer, error);
    try {
      const trace = tracer.callStarted({ callId, method, host, origin, isBackground: cause === "refresh" });
      if (trace !== undefined) record.trace = new SafeCallTrace(trace, onError);
    } catch (error) {
      onError(error);
    }
  }

  /** The first error of a tracer becomes a process warning. */
  #warn(tracer: Tracer, error: unknown): void {
    if (this.#broken.has(tracer)) return;
    this.#broken.add(tracer);
    process.emitWarning(
      `a tracer failed: ${redactedText(messageOf(error))}; its calls are sent anyway, and its further errors are not reported`,
      "DocstokgWarning",
    );
  }
}
