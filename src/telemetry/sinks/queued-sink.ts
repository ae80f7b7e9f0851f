import { setImmediate as nextTurn } from "node:timers/promises";
import { redactedText } from "../../core/text/redaction.ts";
import { messageOf } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import { EmittedEvent } from "../emitted-event.ts";
import type { Envelope, EventType, TelemetryEvent } from "../events.ts";
import type { Sink, SinkOwner } from "../sink.ts";

/** Writes batches of items, one for each event. `write` is never called before the previous call has ended. */
export interface BatchWriter<Item> {
  /**
   * The form in which an event is queued: a small one, because the garbage collector follows objects and strings until
   * they are written. A writer may store the event itself and return only a number; items are written in their order.
   */
  encode(emitted: EmittedEvent): Item;
  /** Rejects with a PartialWriteError when some of the items were written. */
  write(items: readonly Item[]): Promise<void>;
  /** Writes before it returns, even while `write` is running: first the items that `write` has not begun to write. */
  writeSync?(items: readonly Item[]): void;
  close(): Promise<void>;
}

/** Items that are written together. */
interface SinkBatch<Item> {
  readonly items: readonly Item[];
  /** Drops that the last item, a telemetry_dropped event, reports; 0 when it is another event. */
  readonly reported: number;
}

/** Some items of a batch were written completely before the error. */
export class PartialWriteError extends Error {
  /** The number of items written, from the beginning of the batch. */
  readonly written: number;

  constructor(written: number, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.written = written;
  }
}

/** Options of sinks that write to a file. */
export interface QueueOptions {
  /** Events that may be queued, a whole number of at least 1; further ones are dropped and counted. @default 50_000 */
  readonly maxQueued?: number | undefined;
  /** How long the first event of a batch waits for others, in ms, 0 to 60_000. A full batch does not wait. @default 50 */
  readonly delayMs?: number | undefined;
  /** The clock and the timers, for tests. @default systemTime */
  readonly time?: Time | undefined;
}

/** Events written in one turn of the event loop. */
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

/** A sink that queues events and writes them in batches, so that no request waits for a write. */
export class QueuedSink<Item> implements Sink {
  readonly name: string;
  readonly #writer: BatchWriter<Item>;
  readonly #time: Time;
  readonly #maxQueued: number;
  readonly #delayMs: number;
  readonly #batchEvents: number;
  #id: string;
  #queue: Item[] = [];
  #timer: Timer | undefined;
  #draining: Promise<void> | undefined;
  #dropped = 0;
  #unreportedDrops = 0;
  #lastEnvelope: Envelope | undefined;
  #isClosed = false;
  /** Events in the batch that is being written. */
  #writingEvents = 0;
  /** `close` was aborted: the batch that was being written then counts as dropped until its write ends. */
  #isGivenUp = false;
  #hasWarned = false;

  constructor(name: string, writer: BatchWriter<Item>, options: QueueOptions & { readonly batchEvents?: number } = {}) {
    const { time = systemTime, maxQueued = 50_000, delayMs = 50, batchEvents = BATCH_EVENTS } = options;
    if (!(Number.isInteger(maxQueued) && maxQueued >= 1))
      throw new RangeError(`maxQueued must be a whole number of at least 1, not ${maxQueued}`);
    if (!(delayMs >= 0 && delayMs <= 60_000)) throw new RangeError(`delayMs must be from 0 to 60000, not ${delayMs}`);
    this.name = name;
    this.#id = name;
    this.#writer = writer;
    this.#time = time;
    this.#maxQueued = maxQueued;
    this.#delayMs = delayMs;
    // A full queue must not wait for events that it would drop.
    this.#batchEvents = Math.min(batchEvents, maxQueued);
  }

  get dropped(): number {
    return this.#dropped;
  }

  attach({ id }: SinkOwner): void {
    this.#id = id;
  }

  take(event: TelemetryEvent): void {
    this.takeParts(EmittedEvent.of(event));
  }

  /** Telemetry calls it instead of `take`, so that an event need not be built. */
  takeParts(emitted: EmittedEvent): void {
    const length = this.#queue.length;
    const isFull =
      length >= this.#maxQueued &&
      (length >= this.#maxQueued + RESERVED_SLOTS || !REQUIRED_EVENTS.has(emitted.body.event_type));
    this.#lastEnvelope = emitted.envelope;
    if (this.#isClosed || isFull) {
      this.#drop(1);
      return;
    }
    this.#queue.push(this.#writer.encode(emitted));
    if (this.#draining !== undefined) return;
    // A full batch need not wait for more events.
    if (this.#queue.length === this.#batchEvents) this.#timer?.cancel();
    else if (this.#timer !== undefined) return;
    this.#timer = this.#startTimer();
  }

  async flush(): Promise<void> {
    // The batches that are being written may be from before the last events.
    await this.#draining;
    await this.#drainSoon();
  }

  /** A batch that is being written at this moment is left to the system, and may be lost or cut. */
  flushSync(): void {
    if (this.#writer.writeSync === undefined) return;
    // An empty batch too: the writer may hold one that it has not begun to write.
    do {
      const batch = this.#nextBatch();
      try {
        this.#writer.writeSync(batch.items);
      } catch (error) {
        this.#countLost(batch, error);
      }
    } while (this.#queue.length > 0);
  }

  /** Writes the queued events. When the signal is aborted, the rest is dropped, with the batch that is being written. */
  async close(signal?: AbortSignal): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const closed = this.flush().then(() => this.#writer.close());
    if (signal === undefined) return closed;
    const { promise: givenUp, resolve } = Promise.withResolvers<"given up">();
    const giveUp = () => resolve("given up");
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    const isGivenUp = (await Promise.race([closed, givenUp])) === "given up";
    signal.removeEventListener("abort", giveUp);
    if (!isGivenUp) return;
    closed.catch(error => this.#warn(error));
    this.#isGivenUp = true;
    this.#drop(this.#queue.splice(0).length + this.#writingEvents);
  }

  #drainSoon(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
      // An event may have been queued since the last batch was taken.
      if (this.#queue.length > 0) this.#timer ??= this.#startTimer();
    });
    return this.#draining;
  }

  #startTimer(): Timer {
    return this.#time.setTimer(this.#queue.length < this.#batchEvents ? this.#delayMs : 0, () => this.#drainSoon());
  }

  /**
   * Writes what is queued now. Later events wait for the next drain: otherwise a flush would not end while they arrive.
   */
  async #drain(): Promise<void> {
    let left = this.#queue.length;
    let isWritten = true;
    while (left > 0) {
      left -= this.#batchEvents;
      isWritten = await this.#writeBatch();
      // `flushSync` and an aborted `close` empty the queue.
      left = Math.min(left, this.#queue.length);
    }
    // Not after a failed write: a lost telemetry_dropped event would make another one.
    if (isWritten && this.#queue.length === 0 && this.#unreportedDrops > 0) await this.#writeBatch();
  }

  /** False if the batch is lost. */
  async #writeBatch(): Promise<boolean> {
    const batch = this.#nextBatch();
    this.#writingEvents = batch.items.length - (batch.reported > 0 ? 1 : 0);
    let isWritten = true;
    try {
      await this.#writer.write(batch.items);
    } catch (error) {
      this.#countLost(batch, error);
      isWritten = false;
    }
    if (this.#isGivenUp) this.#drop(-this.#writingEvents);
    this.#writingEvents = 0;
    await nextTurn();
    return isWritten;
  }

  /** The next batch. A telemetry_dropped event is added once the events before it have been written. */
  #nextBatch(): SinkBatch<Item> {
    const items = this.#queue.splice(0, this.#batchEvents);
    if (this.#unreportedDrops === 0 || this.#lastEnvelope === undefined || this.#queue.length > 0)
      return { items, reported: 0 };
    const reported = this.#unreportedDrops;
    this.#unreportedDrops = 0;
    const report = { event_type: "telemetry_dropped", sink: this.#id, dropped: reported } as const;
    items.push(this.#writer.encode(new EmittedEvent(report, this.#lastEnvelope)));
    return { items, reported };
  }

  /** The drops that a lost telemetry_dropped event has reported are reported again. */
  #countLost({ items, reported }: SinkBatch<Item>, error: unknown): void {
    const lost = items.length - (error instanceof PartialWriteError ? error.written : 0);
    if (reported > 0 && lost > 0) {
      this.#unreportedDrops += reported;
      this.#drop(lost - 1);
    } else this.#drop(lost);
    this.#warn(error);
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#unreportedDrops += count;
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = redactedText(messageOf(error));
    process.emitWarning(`telemetry sink ${this.#id} drops events: ${message}`, "DocstokgWarning");
  }
}
