import { setImmediate as nextTurn } from "node:timers/promises";
import { messageOf } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { EventType, TelemetryEvent } from "../events.ts";
import type { Sink } from "../sink.ts";

/** Writes batches of events. `write` is never called before the previous call has ended. */
export interface BatchWriter {
  write(events: readonly TelemetryEvent[]): Promise<void>;
  close(): Promise<void>;
}

/** Options of sinks that write to a file. */
export interface QueueOptions {
  /** Events that may be queued, a whole number of at least 1; further ones are dropped and counted. @default 10_000 */
  readonly maxQueued?: number | undefined;
  /** How long the first event of a batch waits for others, in ms, 0 to 60_000. @default 50 */
  readonly delayMs?: number | undefined;
  /** The clock and the timers, for tests. @default systemTime */
  readonly time?: Time | undefined;
}

/** Events written in one turn of the event loop: about 1 ms of work for JSON. */
const BATCH_EVENTS = 256;
/** Extra capacity of the queue for the events that a report needs. */
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
/** `close` waits no longer: a disk that hangs must not keep the program from ending. */
const CLOSING_MS_MAX = 10_000;

/** A sink that queues events and writes them in batches, so that no request waits for a write. */
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
      throw new RangeError(`maxQueued must be a whole number of at least 1, not ${maxQueued}`);
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

  /** Writes the queued events. After CLOSING_MS_MAX the rest is dropped. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { promise: tooLong, resolve: giveUp } = Promise.withResolvers<"too long">();
    const timer = this.#time.setTimer(CLOSING_MS_MAX, () => giveUp("too long"));
    const closed = this.flush().then(() => this.#writer.close());
    try {
      if ((await Promise.race([closed, tooLong])) !== "too long") return;
      closed.catch(error => this.#warn(error));
      const rest = this.#queue.splice(0);
      this.#drop(rest);
      this.#warn(new Error(`closing took longer than ${CLOSING_MS_MAX} ms; ${rest.length} queued events were dropped`));
    } finally {
      timer.cancel();
    }
  }

  #drainSoon(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
      // An event may have been queued since the last batch was taken.
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
        // Otherwise a full disk would cause an endless loop: a lost telemetry_dropped event makes another one.
        if (this.#queue.length === 0) return;
      }
      await nextTurn();
    }
  }

  /** The next batch. A telemetry_dropped event is added once the events before it have been written. */
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
      // A lost telemetry_dropped event counts for the events that it reported.
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
    const message = messageOf(error);
    process.emitWarning(`telemetry sink ${this.name} drops events: ${message}`, "DocstokgWarning");
  }
}
