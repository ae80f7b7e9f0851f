import type { DatabaseSync, StatementSync } from "node:sqlite";
import { runningCooldown, type SharedHost } from "../../core/breaker/breaker-record.ts";
import { type KeptNote, type Notes, shiftInstants } from "../records.ts";
import { LISTED_MAX } from "../store.ts";
import { type Moment, shiftUs } from "./budget-row.ts";
import { damageError } from "./sqlite-errors.ts";

/** `breaker_cooldowns` is for other tools to look at: the notes are what counts. Its times are seconds of the epoch. */
export const NOTES_TABLES = `
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

interface NoteRow {
  readonly name: string;
  readonly note: string;
  readonly keep_until_us: number;
  readonly boot: string;
  readonly machine_us: number;
  readonly wall_ms: number;
}

const HOST = "host ";
const FORGOTTEN_AT_ONCE = 16;

/** The table of notes. Reading needs no transaction, and is never in the way of whoever writes. */
export class SqliteNotes {
  readonly #select: StatementSync;
  readonly #upsert: StatementSync;
  readonly #list: StatementSync;
  readonly #forget: StatementSync;
  readonly #show: StatementSync;
  readonly #hide: StatementSync;
  readonly #collect: StatementSync;

  constructor(db: DatabaseSync) {
    const columns = "name, note, keep_until_us, boot, machine_us, wall_ms";
    this.#select = db.prepare(`SELECT ${columns} FROM notes WHERE name = ?`);
    this.#upsert = db.prepare(
      `INSERT OR REPLACE INTO notes (name, note, keep_until_us, keep_until_ms, boot, machine_us, wall_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#list = db.prepare(`SELECT ${columns} FROM notes WHERE name >= ? AND name < ? ORDER BY name LIMIT ?`);
    // By the machine's clock while it runs; what an earlier run has left, by the wall's.
    this.#forget = db.prepare(
      `DELETE FROM notes WHERE name IN (
        SELECT name FROM notes WHERE (boot = ? AND keep_until_us <= ?) OR (boot <> ? AND keep_until_ms <= ?) LIMIT ?)`,
    );
    this.#show = db.prepare(
      "INSERT OR REPLACE INTO breaker_cooldowns (host, until_wall, reason, updated_at) VALUES (?, ?, ?, ?)",
    );
    this.#hide = db.prepare("DELETE FROM breaker_cooldowns WHERE host = ?");
    this.#collect = db.prepare("DELETE FROM breaker_cooldowns WHERE until_wall < ?");
  }

  find(name: string, now: Moment): KeptNote | undefined {
    const row = this.#select.get(name) as NoteRow | undefined;
    return row && keptIn(row, now);
  }

  list(prefix: string, now: Moment): readonly (KeptNote & { readonly name: string })[] {
    const rows = this.#list.all(prefix, `${prefix}\u{10ffff}`, LISTED_MAX) as unknown as readonly NoteRow[];
    return rows.map(row => ({ name: row.name, ...keptIn(row, now) }));
  }

  /** As a step sees them, within a transaction. */
  at(now: Moment): Notes {
    return {
      find: name => this.find(name, now),
      keep: (name, kept) => this.#keep(name, kept, now),
      list: prefix => this.list(prefix, now),
    };
  }

  #keep(name: string, { note, keepUntilUs }: KeptNote, now: Moment): void {
    const { boot, machineUs, wallMs } = now;
    const keepUntilMs = wallMs + Math.ceil((keepUntilUs - machineUs) / 1000);
    this.#upsert.run(name, JSON.stringify(note), keepUntilUs, keepUntilMs, boot, machineUs, wallMs);
    this.#forget.run(boot, machineUs, boot, wallMs, FORGOTTEN_AT_ONCE);
    if (name.startsWith(HOST)) this.#mirror(name.slice(HOST.length), note as SharedHost, now);
  }

  #mirror(host: string, note: SharedHost, { machineUs, wallMs }: Moment): void {
    const cooldown = runningCooldown(note, machineUs);
    if (cooldown === undefined) this.#hide.run(host);
    else this.#show.run(host, (wallMs + (cooldown.untilUs - machineUs) / 1000) / 1000, cooldown.reason, wallMs / 1000);
    this.#collect.run(wallMs / 1000 - 1);
  }
}

function keptIn({ name, note, keep_until_us, boot, machine_us, wall_ms }: NoteRow, now: Moment): KeptNote {
  const byUs = shiftUs({ boot, machineUs: machine_us, wallMs: wall_ms }, now);
  try {
    const value: unknown = JSON.parse(note);
    return { note: byUs === 0 ? value : shiftInstants(value, byUs), keepUntilUs: keep_until_us + byUs };
  } catch (error) {
    throw damageError(`the note "${name}" cannot be understood`, error);
  }
}
