import { setImmediate as nextTurn } from "node:timers/promises";
import { redactedText } from "../core/text/redaction.ts";
import { messageOf } from "../errors.ts";
import type { StartedCall } from "../http/tracing.ts";
import type { Time } from "../time/time.ts";
import type { EmittedEvent } from "./emitted-event.ts";
import type { EventType } from "./events.ts";
import type { Sink } from "./sink.ts";
import { UnconfirmedEvents } from "./unconfirmed-events.ts";

/** A sink of a telemetry. Its errors become a warning, its close has a time limit, and the events that it lost are counted. */
export class AttachedSink {
  readonly id: string;
  readonly sink: Sink;
  readonly #unconfirmed = new UnconfirmedEvents();
  /** Whether the sink queues events. Then an event is written after `take` has returned, also if it returns no promise. */
  readonly #isQueue: boolean;
  /** Events that the sink refused or had not written when its close failed or timed out, and that `sink.dropped` does not count. */
  #lost = 0;
  /**
   * `sink.dropped` when the last successful flush began. Events that the sink has dropped since then are not confirmed
   * either, and must not count twice.
   */
  #droppedBefore = 0;
  #hasWarned = false;

  constructor(id: string, sink: Sink) {
    this.id = id;
    this.sink = sink;
    this.#isQueue = sink.flush !== undefined || sink.close !== undefined;
  }

  get dropped(): number {
    return (this.sink.dropped ?? 0) + this.#lost;
  }

  listensTo(type: EventType): boolean {
    if (this.sink.listensTo === undefined) return true;
    try {
      return this.sink.listensTo(type);
    } catch (error) {
      this.#warn(error);
      return false;
    }
  }

  callStarted(call: StartedCall): void {
    try {
      this.sink.callStarted?.(call);
    } catch (error) {
      this.#warn(error);
    }
  }

  take(emitted: EmittedEvent): void {
    const { sink } = this;
    try {
      const taken = takesParts(sink) ? sink.takeParts(emitted) : sink.take(emitted.event);
      // Not `instanceof`: promises of other libraries and realms may reject too.
      if (isThenable(taken)) this.#unconfirmed.addPending(taken, error => this.#countRefused(error));
      else if (this.#isQueue) this.#unconfirmed.add();
    } catch (error) {
      this.#countRefused(error);
    }
  }

  /** Never rejects. */
  async flush(): Promise<void> {
    const { sink } = this;
    const { dropped = 0 } = sink;
    try {
      await this.#unconfirmed.confirm(sink.flush && (() => sink.flush?.()));
      if (sink.flush !== undefined) this.#droppedBefore = dropped;
    } catch (error) {
      this.#warn(error);
    }
  }

  flushSync(): void {
    try {
      this.sink.flushSync?.();
    } catch (error) {
      this.#warn(error);
    }
  }

  /**
   * Never rejects, and ends after `timeoutMs` at the latest. Then, or if the sink fails, the events that are not confirmed
   * count as dropped.
   */
  async close(time: Time, timeoutMs: number): Promise<void> {
    const { sink } = this;
    const abort = new AbortController();
    const { promise: givenUp, resolve: giveUp } = Promise.withResolvers<"given up">();
    let droppedAtTimeout = 0;
    const timer = time.setTimer(timeoutMs, () => {
      droppedAtTimeout = this.dropped;
      abort.abort(new Error(`closing took longer than ${timeoutMs} ms`));
      // A sink that obeys the signal settles at once, and has counted what it drops.
      void nextTurn().then(() => giveUp("given up"));
    });
    const closed = this.#unconfirmed.confirm(sink.close && (() => sink.close?.(abort.signal))).then(
      () => "closed" as const,
      (error: unknown) => {
        this.#warn(error);
        return "failed" as const;
      },
    );
    const ending = await Promise.race([closed, givenUp]);
    timer.cancel();
    // A sink that has ended is trusted with its own count, if it has one.
    if (ending === "given up" || (ending === "failed" && sink.dropped === undefined)) {
      const counted = (sink.dropped ?? 0) - this.#droppedBefore;
      this.#lost += Math.max(0, this.#unconfirmed.count - counted);
    }
    if (abort.signal.aborted) this.#reportUnclosed(timeoutMs, this.dropped - droppedAtTimeout);
  }

  #countRefused(error: unknown): void {
    this.#lost += 1;
    this.#warn(error);
  }

  /** The first error of a sink becomes a process warning; events that it does not take are counted. */
  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = redactedText(messageOf(error));
    process.emitWarning(
      `telemetry sink ${this.id} failed: ${message}; its further errors are not reported, and events that it does not take count as dropped`,
      "DocstokgWarning",
    );
  }

  #reportUnclosed(timeoutMs: number, lost: number): void {
    const unwritten =
      lost === 0
        ? "no event was lost, but run_summary of a SQLite file may be missing"
        : `${lost} events that it has not written count as dropped`;
    process.emitWarning(
      `telemetry sink ${this.id} did not close within ${timeoutMs} ms (closeTimeoutMs); ${unwritten}`,
      "DocstokgWarning",
    );
  }
}

/** A sink of this package that needs only the parts of an event. */
function takesParts(sink: Sink): sink is Sink & { takeParts(emitted: EmittedEvent): void } {
  return "takeParts" in sink;
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined | null)?.then === "function";
}
