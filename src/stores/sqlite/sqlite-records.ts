import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type BreakerRecord, runningCooldown } from "../../core/breaker/breaker-record.ts";
import { hostOfRecord } from "../record-names.ts";
import { type RecordTable, type StoredRecord, shiftInstants } from "../records.ts";
import { LISTED_MAX } from "../store.ts";
import { type MachineInstant, shiftUs } from "./machine-instant.ts";

/** `breaker_cooldowns` is a copy for other tools, in epoch seconds (law S5). This program reads only the records. */
export const RECORD_TABLES = `
  CREATE TABLE notes (
    name TEXT PRIMARY KEY NOT NULL,
    note TEXT NOT NULL,
    keep_until_us INTEGER NOT NULL,
    keep_until_ms INTEGER NOT NULL,
    boot TEXT NOT NULL,
    machine_us INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL
  );
  CREATE INDEX notes_by_end ON notes (keep_until_us);
  CREATE TABLE breaker_cooldowns (
    host TEXT PRIMARY KEY NOT NULL,
    until_wall REAL NOT NULL,
    reason TEXT NOT NULL,
    updated_at REAL NOT NULL
  );
  CREATE INDEX breaker_cooldowns_by_end ON breaker_cooldowns (until_wall);
`;

/**
 * Renames what version 2 stored under other names: the table, its column, and fields inside the JSON. The fields are
 * found as text: a quotation mark inside a JSON string is escaped, so a reason never looks like one of these keys.
 * Status records of processes are dropped: they hold other fields, and a running process writes a new one each second.
 */
export const RENAMED_RECORDS = `
  DROP INDEX notes_by_end;
  ALTER TABLE notes RENAME TO records;
  ALTER TABLE records RENAME COLUMN note TO record;
  CREATE INDEX records_by_end ON records (keep_until_us);
  DELETE FROM records WHERE name LIKE 'process %';
  UPDATE records SET record =
    replace(replace(record, '"asked":', '"serverCooldown":'), '"ordered":', '"operatorCooldown":')
    WHERE name LIKE 'host %' OR name LIKE 'resolver %';
  UPDATE records SET record =
    replace(replace(record, '"hungrySinceUs":', '"waitingSinceUs":'), '"hungryUntilUs":', '"waitingUntilUs":')
    WHERE name LIKE 'slots %';
  UPDATE budgets SET state = replace(
    replace(replace(state, '"isHungry":', '"isWaiting":'), '"backUs":', '"nextRequestUs":'), '"served":', '"usage":');
`;

interface RecordRow {
  readonly name: string;
  readonly record: string;
  readonly keep_until_us: number;
  readonly boot: string;
  readonly machine_us: number;
  readonly wall_ms: number;
}

/** How many expired records each write deletes at most. */
const DELETED_AT_ONCE = 16;

/** The table of records. Reading needs no transaction and does not block a writer. */
export class SqliteRecords {
  readonly #select: StatementSync;
  readonly #upsert: StatementSync;
  readonly #list: StatementSync;
  readonly #deleteExpired: StatementSync;
  readonly #deleteOfEarlierStart: StatementSync;
  /** Records of an earlier start of the machine were deleted. This reads the whole table, so it is done once. */
  #isCleaned = false;
  readonly #upsertCooldown: StatementSync;
  readonly #deleteCooldown: StatementSync;
  readonly #deleteEndedCooldowns: StatementSync;

  constructor(db: DatabaseSync) {
    const columns = "name, record, keep_until_us, boot, machine_us, wall_ms";
    this.#select = db.prepare(`SELECT ${columns} FROM records WHERE name = ?`);
    this.#upsert = db.prepare(
      `INSERT OR REPLACE INTO records (name, record, keep_until_us, keep_until_ms, boot, machine_us, wall_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#list = db.prepare(`SELECT ${columns} FROM records WHERE name >= ? AND name < ? ORDER BY name LIMIT ?`);
    // Records of this start of the machine expire by its clock, records of an earlier start by the wall clock.
    this.#deleteExpired = db.prepare(
      "DELETE FROM records WHERE name IN (SELECT name FROM records WHERE keep_until_us <= ? AND boot = ? LIMIT ?)",
    );
    this.#deleteOfEarlierStart = db.prepare("DELETE FROM records WHERE boot <> ? AND keep_until_ms <= ?");
    this.#upsertCooldown = db.prepare(
      "INSERT OR REPLACE INTO breaker_cooldowns (host, until_wall, reason, updated_at) VALUES (?, ?, ?, ?)",
    );
    this.#deleteCooldown = db.prepare("DELETE FROM breaker_cooldowns WHERE host = ?");
    this.#deleteEndedCooldowns = db.prepare("DELETE FROM breaker_cooldowns WHERE until_wall < ?");
  }

  find(name: string, now: MachineInstant): StoredRecord | undefined {
    const row = this.#select.get(name) as RecordRow | undefined;
    return row && storedRecordOf(row, now);
  }

  list(prefix: string, now: MachineInstant): readonly (StoredRecord & { readonly name: string })[] {
    const rows = this.#list.all(prefix, `${prefix}\u{10ffff}`, LISTED_MAX) as unknown as readonly RecordRow[];
    return rows.flatMap(row => {
      const stored = storedRecordOf(row, now);
      return stored === undefined ? [] : [{ name: row.name, ...stored }];
    });
  }

  /** The records at `now`, within a transaction. */
  at(now: MachineInstant): RecordTable {
    return {
      find: name => this.find(name, now),
      put: (name, stored) => this.#put(name, stored, now),
      list: prefix => this.list(prefix, now),
    };
  }

  #put(name: string, { record, keepUntilUs }: StoredRecord, now: MachineInstant): void {
    const { boot, machineUs, wallMs } = now;
    const keepUntilMs = wallMs + Math.ceil((keepUntilUs - machineUs) / 1000);
    this.#upsert.run(name, JSON.stringify(record), keepUntilUs, keepUntilMs, boot, machineUs, wallMs);
    this.#deleteExpired.run(machineUs, boot, DELETED_AT_ONCE);
    if (!this.#isCleaned) this.#deleteOfEarlierStart.run(boot, wallMs);
    this.#isCleaned = true;
    const host = hostOfRecord(name);
    if (host !== undefined) this.#publishCooldown(host, record as BreakerRecord, now);
  }

  #publishCooldown(host: string, record: BreakerRecord, { machineUs, wallMs }: MachineInstant): void {
    const cooldown = runningCooldown(record, machineUs);
    if (cooldown === undefined) this.#deleteCooldown.run(host);
    else
      this.#upsertCooldown.run(
        host,
        (wallMs + (cooldown.untilUs - machineUs) / 1000) / 1000,
        cooldown.reason,
        wallMs / 1000,
      );
    this.#deleteEndedCooldowns.run(wallMs / 1000 - 1);
  }
}

/** Undefined for a row that cannot be parsed: it concerns one host, and the next write replaces it. */
function storedRecordOf(
  { record, keep_until_us, boot, machine_us, wall_ms }: RecordRow,
  now: MachineInstant,
): StoredRecord | undefined {
  const byUs = shiftUs({ boot, machineUs: machine_us, wallMs: wall_ms }, now);
  try {
    const value: unknown = JSON.parse(record);
    return { record: byUs === 0 ? value : shiftInstants(value, byUs), keepUntilUs: keep_until_us + byUs };
  } catch {
    return undefined;
  }
}
