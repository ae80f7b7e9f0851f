import type { AttemptTrace, CallTrace, StartedAttempt } from "./tracing.ts";

const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The trace of one call. An error of its tracer, or a header field that cannot be sent, has no effect on the call. */
export class SafeCallTrace {
  readonly #trace: CallTrace;
  readonly #onError: (error: unknown) => void;

  constructor(trace: CallTrace, onError: (error: unknown) => void) {
    this.#trace = trace;
    this.#onError = onError;
  }

  /** Undefined if the tracer has failed: the attempt is sent without a trace. */
  attemptStarted(started: StartedAttempt): AttemptTrace | undefined {
    return this.#run(() => {
      const attempt = this.#trace.attemptStarted(started);
      return {
        headers: this.#validHeaders(attempt.headers),
        movedTo: (callId, number) => this.#run(() => attempt.movedTo(callId, number)),
        dropped: () => this.#run(() => attempt.dropped()),
      };
    });
  }

  #validHeaders(flat: readonly string[]): readonly string[] {
    const valid: string[] = [];
    for (let at = 0; at + 1 < flat.length; at += 2) {
      const [name = "", value = ""] = flat.slice(at, at + 2);
      if (FIELD_NAME.test(name) && FIELD_VALUE.test(value)) valid.push(name, value);
      else this.#onError(new RangeError(`the header field ${JSON.stringify(name)} or its value cannot be sent`));
    }
    return valid;
  }

  #run<Result>(step: () => Result): Result | undefined {
    try {
      return step();
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
  }
}
