import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { redactedText } from "../../core/text/redaction.ts";
import { inTransaction, type OpenedDatabase } from "../../stores/sqlite/database-file.ts";
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
import { warnOfLostFile } from "./lost-file.ts";
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
  // The program may change its working directory later.
  const writer = new SqliteWriter(resolve(file), time);
  await writer.open();
  return new QueuedSink("sqlite", writer, { ...options, batchEvents: BATCH_EVENTS });
}

class SqliteWriter implements BatchWriter<TelemetryEvent> {
  readonly #path: string;
  readonly #time: Time;
  /** Undefined after the file was lost, until another one is opened. */
  #tables: EventTables | undefined;
  #hasWarned = false;
  /** Events that `write` has taken and not written, while another process writes. */
  #notWritten: readonly TelemetryEvent[] = [];

  constructor(path: string, time: Time) {
    this.#path = path;
    this.#time = time;
  }

  async open(): Promise<EventTables> {
    const onTrouble = (error: Error) => process.emitWarning(redactedText(error.message), "DocstokgWarning");
    const opening = { path: this.#path, format: TELEMETRY_FORMAT, time: this.#time, random: Math.random, onTrouble };
    this.#tables = new EventTables(await openWhenFree(opening, OPENING_MS_MAX));
    return this.#tables;
  }

  encode({ event }: EmittedEvent): TelemetryEvent {
    return event;
  }

  async write(events: readonly TelemetryEvent[]): Promise<void> {
    this.#notWritten = events;
    try {
      await this.#whenFree(tables => tables.insert(this.#notWritten));
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
    const tables = this.#tables;
    if (tables === undefined || !isPresent(this.#path, tables)) throw new Error(`${this.#path} was deleted or moved`);
    inTransaction(tables.db, "BEGIN IMMEDIATE", () => tables.insert(all));
    this.#notWritten = [];
  }

  /** Writes the summary of each run that was written here, from all its events in the file; the event loop gets turns. */
  async close(): Promise<void> {
    const tables = this.#tables;
    if (tables === undefined) return;
    try {
      for (const runId of tables.runs) {
        const tally = new RunTally(runId);
        for await (const event of eventsOf(tables.db, runId)) tally.take(event);
        const summary = await inTurns(tally.summarySteps());
        const json = await inTurns(summaryJson(summary));
        await this.#whenFree(({ db }) => saveSummary(db, summary, json));
      }
    } finally {
      this.#tables?.db.close();
    }
  }

  /** One transaction. It is retried while another process writes; SQLite's busy timeout would block the event loop. */
  async #whenFree(work: (tables: EventTables) => void): Promise<void> {
    const deadlineUs = this.#time.monotonicUs() + BUSY_MS_MAX * 1000;
    for (let attempt = 1; ; attempt += 1) {
      const tables = await this.#presentTables();
      try {
        inTransaction(tables.db, "BEGIN IMMEDIATE", () => work(tables));
        return;
      } catch (error) {
        if (!isBusy(error) || this.#time.monotonicUs() >= deadlineUs) throw error;
      }
      await pause(this.#time, backoffMs(BACKOFF, attempt, Math.random(), 1));
    }
  }

  /** Opens the file again if its path leads to another one: events in a file that was deleted cannot be read. */
  async #presentTables(): Promise<EventTables> {
    const tables = this.#tables;
    if (tables === undefined) return this.open();
    if (isPresent(this.#path, tables)) return tables;
    this.#tables = undefined;
    tables.db.close();
    if (!this.#hasWarned) warnOfLostFile(this.#path);
    this.#hasWarned = true;
    return this.open();
  }
}

/**
 * False if the path leads to another file than the one that is open. Throws an error if that file was emptied: SQLite
 * does not notice it, and would write to a file that nothing can read.
 */
function isPresent(path: string, { identity }: EventTables): boolean {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined || found.ino !== identity) return false;
  if (found.size === 0n)
    throw new Error(`${path} was emptied while it was written; delete it, and a new file is written`);
  return true;
}

/** The tables of one open file. */
class EventTables {
  readonly db: DatabaseSync;
  readonly identity: bigint | undefined;
  /** The runs with events that this process has written to the file. */
  readonly runs = new Set<string>();
  readonly #inserts = new Map<EventType, Insert>();
  /** The last `seq`. Events are numbered across all tables, so that events of the same ms keep their order. */
  readonly #lastSeq: StatementSync;

  constructor({ db, identity }: OpenedDatabase) {
    this.db = db;
    this.identity = identity;
    const lasts = EVENT_TABLES.map(table => `(SELECT coalesce(max(seq), 0) FROM ${table})`);
    this.#lastSeq = db.prepare(`SELECT max(${lasts.join(", ")}) AS seq`);
  }

  /** To be called within a transaction. */
  insert(events: readonly TelemetryEvent[]): void {
    let seq = Number(this.#lastSeq.get()?.["seq"] ?? 0);
    for (const event of events) {
      seq += 1;
      this.runs.add(event.run_id);
      this.#insertOf(event.event_type).run(seq, event);
    }
  }

  #insertOf(type: EventType): Insert {
    const known = this.#inserts.get(type) ?? new Insert(this.db, type);
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
