import { setImmediate as nextTurn } from "node:timers/promises";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { EventType, TelemetryEvent } from "../events.ts";
import type { Sink } from "../sink.ts";

/** Writes some events where they belong. Called for one batch after the other, never for two at once. */
export interface BatchWriter {
  write(events: readonly TelemetryEvent[]): Promise<void>;
  close(): Promise<void>;
}

export interface QueueOptions {
  /** So many events wait at the most; what comes on top is dropped, and counted. @default 10_000 */
  readonly maxQueued?: number | undefined;
  /** How long the first event waits for company. @default 50 */
  readonly delayMs?: number | undefined;
  readonly time?: Time | undefined;
}

/** What is written between two turns of the event loop: about a millisecond's work for JSON. */
const BATCH_EVENTS = 256;
/** Places kept free for the few events that a report cannot do without. */
const RESERVED_SLOTS = 1000;
const REQUIRED_EVENTS: ReadonlySet<EventType> = new Set([
  "run_started",
  "run_ended",
  "policy_loaded",
  "breaker_state_change",
  "breaker_cooldown_set",
  "breaker_cooldown_ended",
  "aimd_adjust",
]);
/** A disk that hangs does not keep a program from ending. */
const CLOSING_MS_MAX = 10_000;

/** A sink that writes later, in batches, off the request's way. */
export class QueuedSink implements Sink {
  readonly name: string;
  readonly #writer: BatchWriter;
  readonly #time: Time;
  readonly #maxQueued: number;
  readonly #delayMs: number;
  readonly #batch: number;
  #queue: TelemetryEvent[] = [];
  #timer: Timer | undefined;
  #draining: Promise<void> | undefined;
  #dropped = 0;
  #unreportedDrops = 0;
  #lastDropped: TelemetryEvent | undefined;
  #isClosed = false;
  #hasWarned = false;

  constructor(name: string, writer: BatchWriter, options: QueueOptions & { readonly batch?: number } = {}) {
    const { time = systemTime, maxQueued = 10_000, delayMs = 50, batch = BATCH_EVENTS } = options;
    if (!(Number.isInteger(maxQueued) && maxQueued >= 1))
      throw new RangeError(`maxQueued must be a whole number from 1, not ${maxQueued}`);
    if (!(delayMs >= 0 && delayMs <= 60_000)) throw new RangeError(`delayMs must be from 0 to 60000, not ${delayMs}`);
    this.name = name;
    this.#writer = writer;
    this.#time = time;
    this.#maxQueued = maxQueued;
    this.#delayMs = delayMs;
    this.#batch = batch;
  }

  get dropped(): number {
    return this.#dropped;
  }

  take(event: TelemetryEvent): void {
    const capacity = REQUIRED_EVENTS.has(event.event_type) ? this.#maxQueued + RESERVED_SLOTS : this.#maxQueued;
    if (this.#isClosed || this.#queue.length >= capacity) {
      this.#drop([event]);
      return;
    }
    this.#queue.push(event);
    if (this.#draining === undefined) this.#arm();
  }

  async flush(): Promise<void> {
    do await this.#drainSoon();
    while (this.#queue.length > 0);
  }

  /** Writes what is queued, unless that takes too long. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { promise: tooLong, resolve: giveUp } = Promise.withResolvers<"too long">();
    const timer = this.#time.setTimer(CLOSING_MS_MAX, () => giveUp("too long"));
    const closed = this.flush().then(() => this.#writer.close());
    try {
      if ((await Promise.race([closed, tooLong])) !== "too long") return;
      closed.catch(error => this.#warn(error));
      this.#drop(this.#queue.splice(0));
      this.#warn(new Error(`it did not come to an end within ${CLOSING_MS_MAX} ms`));
    } finally {
      timer.cancel();
    }
  }

  #drainSoon(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
      // One may have come between the last look and here.
      if (this.#queue.length > 0) this.#arm();
    });
    return this.#draining;
  }

  #arm(): void {
    this.#timer ??= this.#time.setTimer(this.#delayMs, () => this.#drainSoon());
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 || this.#unreportedDrops > 0) {
      const batch = this.#next();
      try {
        await this.#writer.write(batch);
      } catch (error) {
        this.#drop(batch);
        this.#warn(error);
        // Were the notice of a loss lost and told again, a full disk would keep this going round.
        if (this.#queue.length === 0) return;
      }
      await nextTurn();
    }
  }

  /** What was dropped is told behind what was kept before it. */
  #next(): readonly TelemetryEvent[] {
    const batch = this.#queue.splice(0, this.#batch);
    if (this.#unreportedDrops === 0 || this.#lastDropped === undefined || this.#queue.length > 0) return batch;
    const { ts, run_id, config_hash } = this.#lastDropped;
    const dropped = this.#unreportedDrops;
    this.#unreportedDrops = 0;
    return [...batch, { ts, event_type: "telemetry_dropped", run_id, config_hash, sink: this.name, dropped }];
  }

  #drop(events: readonly TelemetryEvent[]): void {
    for (const event of events) {
      // A notice that is lost itself stands for as many as it told of.
      if (event.event_type === "telemetry_dropped") this.#unreportedDrops += event.dropped;
      else {
        this.#dropped += 1;
        this.#unreportedDrops += 1;
      }
      this.#lastDropped = event;
    }
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = error instanceof Error ? error.message : String(error);
    process.emitWarning(`the telemetry sink ${this.name} loses events: ${message}`, "DocstokgWarning");
  }
}
