import { redactedText } from "../core/text/redaction.ts";
import { messageOf } from "../errors.ts";
import type { ReportedRequest } from "./request-telemetry.ts";
import { SafeCallTrace } from "./safe-call-trace.ts";
import type { StartedCall, Tracer } from "./tracing.ts";

/** Called when a call begins. */
type CallObserver = (call: StartedCall) => void;

/**
 * The tracers and observers of a hub's listeners. Every observer learns of each call. Only the first tracer traces; the
 * others take its place when it is removed.
 */
export class Tracers {
  #tracers: readonly Tracer[] = [];
  #observers: readonly CallObserver[] = [];
  readonly #broken = new WeakSet<Tracer | CallObserver>();

  /** Returns a function that removes the tracer. A tracer that was added already is not added again. */
  add(tracer: Tracer): () => void {
    if (!this.#tracers.includes(tracer)) this.#tracers = [...this.#tracers, tracer];
    return () => {
      this.#tracers = this.#tracers.filter(other => other !== tracer);
    };
  }

  /** Returns a function that removes the observer. An observer that was added already is not added again. */
  addObserver(observer: CallObserver): () => void {
    if (!this.#observers.includes(observer)) this.#observers = [...this.#observers, observer];
    return () => {
      this.#observers = this.#observers.filter(other => other !== observer);
    };
  }

  /**
   * Begins the trace of a call. Must be called in the asynchronous context of its caller. A tracer that throws has no
   * effect on the call.
   */
  start({ record, method, host, origin, cause }: ReportedRequest): void {
    const [tracer] = this.#tracers;
    if (tracer === undefined && this.#observers.length === 0) return;
    const { callId } = record;
    const call = { callId, method, host, origin, isBackground: cause === "refresh" };
    for (const observer of this.#observers) this.#run(observer, () => observer(call));
    if (tracer === undefined) return;
    const trace = this.#run(tracer, () => tracer.callStarted(call));
    if (trace !== undefined) record.trace = new SafeCallTrace(trace, error => this.#warn(tracer, error));
  }

  #run<Result>(tracer: Tracer | CallObserver, step: () => Result): Result | undefined {
    try {
      return step();
    } catch (error) {
      this.#warn(tracer, error);
      return undefined;
    }
  }

  /** The first error of a tracer becomes a process warning. */
  #warn(tracer: Tracer | CallObserver, error: unknown): void {
    if (this.#broken.has(tracer)) return;
    this.#broken.add(tracer);
    process.emitWarning(
      `a tracer failed: ${redactedText(messageOf(error))}; its calls are sent anyway, and its further errors are not reported`,
      "DocstokgWarning",
    );
  }
}
