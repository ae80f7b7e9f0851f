import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { redactedText } from "../../core/text/redaction.ts";
import { inTransaction } from "../../stores/sqlite/database-file.ts";
import { openWhenFree } from "../../stores/sqlite/open-database.ts";
import { isBusy } from "../../stores/sqlite/sqlite-errors.ts";
import { pause } from "../../time/pause.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import type { EmittedEvent } from "../emitted-event.ts";
import { EVENT_SPECS } from "../event-fields.ts";
import type { EventType, TelemetryEvent } from "../events.ts";
import { eventsOf } from "../reading/sqlite-events.ts";
import type { Sink } from "../sink.ts";
import { EVENT_TABLES, TABLE_OF, TELEMETRY_FORMAT } from "../sqlite-tables.ts";
import { RunTally } from "../summary/run-tally.ts";
import { type BatchWriter, QueuedSink, type QueueOptions } from "./queued-sink.ts";
import { saveSummary, summaryJson } from "./run-summary-row.ts";

/** Several processes that create one file at once finish within milliseconds. */
const OPENING_MS_MAX = 5000;
/** Events per transaction: about 2 ms of work, so that the event loop is not blocked for long. */
const BATCH_EVENTS = 256;
/** The write of another process takes one or two milliseconds. */
const BACKOFF = { baseMs: 2, capMs: 100 };
/** A file that is locked for longer is not being written: another program holds a lock, and events are dropped. */
const BUSY_MS_MAX = 30_000;

/**
 * Writes events to the tables of a SQLite database, to be read with SQL. Several processes may use one file. Rejects with
 * a StoreError when the file cannot be opened.
 */
export async function sqliteSink(file: string, options: QueueOptions = {}): Promise<Sink> {
  const { time = systemTime } = options;
  const onTrouble = (error: Error) => process.emitWarning(redactedText(error.message), "DocstokgWarning");
  const opening = { path: file, format: TELEMETRY_FORMAT, time, random: Math.random, onTrouble };
  const { db } = await openWhenFree(opening, OPENING_MS_MAX);
  return new QueuedSink("sqlite", new SqliteWriter(db, time), { ...options, batchEvents: BATCH_EVENTS });
}

class SqliteWriter implements BatchWriter<TelemetryEvent> {
  readonly #db: DatabaseSync;
  readonly #time: Time;
  readonly #inserts = new Map<EventType, Insert>();
  readonly #runs = new Set<string>();
  /** Events that `write` has taken and not written, while another process writes. */
  #notWritten: readonly TelemetryEvent[] = [];
  /** The last `seq`. Events are numbered across all tables, so that events of the same ms keep their order. */
  readonly #lastSeq: StatementSync;

  constructor(db: DatabaseSync, time: Time) {
    this.#db = db;
    this.#time = time;
    const lasts = EVENT_TABLES.map(table => `(SELECT coalesce(max(seq), 0) FROM ${table})`);
    this.#lastSeq = db.prepare(`SELECT max(${lasts.join(", ")}) AS seq`);
  }

  encode({ event }: EmittedEvent): TelemetryEvent {
    return event;
  }

  async write(events: readonly TelemetryEvent[]): Promise<void> {
    this.#notWritten = events;
    try {
      await this.#whenFree(() => this.#insertAll(this.#notWritten));
    } catch (error) {
      // Otherwise `writeSync` has written them during a pause.
      if (this.#notWritten.length > 0) throw error;
    } finally {
      this.#notWritten = [];
    }
  }

  /** Tried once: a process that is about to end does not wait for another writer. */
  writeSync(events: readonly TelemetryEvent[]): void {
    const all = [...this.#notWritten, ...events];
    // An empty transaction would fail too if another process writes.
    if (all.length === 0) return;
    inTransaction(this.#db, "BEGIN IMMEDIATE", () => this.#insertAll(all));
    this.#notWritten = [];
  }

  #insertAll(events: readonly TelemetryEvent[]): void {
    let seq = Number(this.#lastSeq.get()?.["seq"] ?? 0);
    for (const event of events) {
      seq += 1;
      this.#runs.add(event.run_id);
      this.#insertOf(event.event_type).run(seq, event);
    }
  }

  /** Writes the summary of each run that was written here, from all its events in the file; the event loop gets turns. */
  async close(): Promise<void> {
    try {
      for (const runId of this.#runs) {
        const tally = new RunTally(runId);
        for await (const event of eventsOf(this.#db, runId)) tally.take(event);
        const summary = await inTurns(tally.summarySteps());
        const json = await inTurns(summaryJson(summary));
        await this.#whenFree(() => saveSummary(this.#db, summary, json));
      }
    } finally {
      this.#db.close();
    }
  }

  /** One transaction. It is retried while another process writes; SQLite's busy timeout would block the event loop. */
  async #whenFree(work: () => void): Promise<void> {
    const deadlineUs = this.#time.monotonicUs() + BUSY_MS_MAX * 1000;
    for (let attempt = 1; ; attempt += 1) {
      try {
        inTransaction(this.#db, "BEGIN IMMEDIATE", work);
        return;
      } catch (error) {
        if (!isBusy(error) || this.#time.monotonicUs() >= deadlineUs) throw error;
      }
      await pause(this.#time, backoffMs(BACKOFF, attempt, Math.random(), 1));
    }
  }

  #insertOf(type: EventType): Insert {
    const known = this.#inserts.get(type) ?? new Insert(this.#db, type);
    this.#inserts.set(type, known);
    return known;
  }
}

/** Runs one step for each turn of the event loop. */
async function inTurns<Result>(steps: Generator<void, Result, void>): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await nextTurn();
  }
}

/** The INSERT statement of one event type. */
class Insert {
  readonly #columns: readonly string[];
  readonly #statement: StatementSync;

  constructor(db: DatabaseSync, type: EventType) {
    const fields = Object.keys(EVENT_SPECS[type].fields).filter(name => name !== "config_hash");
    this.#columns = ["ts", "event_type", "run_id", "config_hash", ...fields];
    const names = this.#columns.map(name => `"${name}"`).join(", ");
    const placeholders = this.#columns.map(() => "?").join(", ");
    this.#statement = db.prepare(`INSERT INTO ${TABLE_OF[type]} (seq, ${names}) VALUES (?, ${placeholders})`);
  }

  run(seq: number, event: TelemetryEvent): void {
    const fields = event as unknown as Readonly<Record<string, string | number | boolean | undefined>>;
    this.#statement.run(
      seq,
      ...this.#columns.map(name => {
        const value = fields[name];
        return typeof value === "boolean" ? Number(value) : (value ?? null);
      }),
    );
  }
}
