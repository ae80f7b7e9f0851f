import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { BudgetMember, BudgetTables, LeaseEntry, Table } from "../../core/limits/budget-tables.ts";

/** Processes, turns and leases of a budget: a row for each, so that a transaction writes only those that change. */
export const BUDGET_ENTRIES_TABLE = `
  CREATE TABLE budget_entries (
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (key, kind, id)
  ) WITHOUT ROWID;
`;

type Kind = "member" | "turn" | "lease";

interface EntryRow {
  readonly kind: Kind;
  readonly id: string;
  readonly value: string;
}

/** The statements for the table. */
export class BudgetEntries {
  readonly #select: StatementSync;
  readonly #upsert: StatementSync;
  readonly #delete: StatementSync;
  readonly #all: StatementSync;
  readonly #deleteAll: StatementSync;

  constructor(db: DatabaseSync) {
    this.#select = db.prepare("SELECT value FROM budget_entries WHERE key = ? AND kind = ? AND id = ?");
    this.#upsert = db.prepare(
      `INSERT INTO budget_entries (key, kind, id, value) VALUES (?, ?, ?, ?)
        ON CONFLICT (key, kind, id) DO UPDATE SET value = excluded.value`,
    );
    this.#delete = db.prepare("DELETE FROM budget_entries WHERE key = ? AND kind = ? AND id = ?");
    this.#all = db.prepare("SELECT kind, id, value FROM budget_entries WHERE key = ?");
    this.#deleteAll = db.prepare("DELETE FROM budget_entries WHERE key = ?");
  }

  find(key: string, kind: Kind, id: string): string | undefined {
    return this.#select.get(key, kind, id)?.["value"] as string | undefined;
  }

  put(key: string, kind: Kind, id: string, value: string): void {
    this.#upsert.run(key, kind, id, value);
  }

  remove(key: string, kind: Kind, id: string): void {
    this.#delete.run(key, kind, id);
  }

  removeAll(key: string): void {
    this.#deleteAll.run(key);
  }

  /** Shifts the instants of all entries of a budget, after a restart of the machine. */
  shift(key: string, byUs: number): void {
    for (const { kind, id, value } of this.#all.all(key) as unknown as readonly EntryRow[]) {
      const entry = parsed(value);
      if (entry !== undefined) this.put(key, kind, id, JSON.stringify(shiftedEntry(entry, byUs)));
      else this.remove(key, kind, id);
    }
  }
}

/** The entries of one budget during one transaction: each is read once, and written at the end if it has changed. */
export class OpenBudgetEntries implements BudgetTables {
  readonly members: Table<string, BudgetMember>;
  readonly turns: Table<number, string>;
  readonly leases: Table<number, LeaseEntry>;
  readonly #tables: readonly { save(): void }[];

  constructor(entries: BudgetEntries, key: string) {
    const members = new OpenTable<string, BudgetMember>(entries, key, "member");
    const turns = new OpenTable<number, string>(entries, key, "turn");
    const leases = new OpenTable<number, LeaseEntry>(entries, key, "lease");
    this.members = members;
    this.turns = turns;
    this.leases = leases;
    this.#tables = [members, turns, leases];
  }

  save(): void {
    for (const table of this.#tables) table.save();
  }
}

class OpenTable<Key extends string | number, Value> implements Table<Key, Value> {
  readonly #entries: BudgetEntries;
  readonly #key: string;
  readonly #kind: Kind;
  readonly #read = new Map<Key, { value: Value | undefined; readonly stored: string | undefined }>();

  constructor(entries: BudgetEntries, key: string, kind: Kind) {
    this.#entries = entries;
    this.#key = key;
    this.#kind = kind;
  }

  get(id: Key): Value | undefined {
    return this.#entryOf(id).value;
  }

  set(id: Key, value: Value): void {
    this.#entryOf(id).value = value;
  }

  delete(id: Key): void {
    this.#entryOf(id).value = undefined;
  }

  save(): void {
    for (const [id, { value, stored }] of this.#read) {
      const text = value === undefined ? undefined : JSON.stringify(value);
      if (text === stored) continue;
      if (text === undefined) this.#entries.remove(this.#key, this.#kind, String(id));
      else this.#entries.put(this.#key, this.#kind, String(id), text);
    }
  }

  #entryOf(id: Key) {
    const known = this.#read.get(id);
    if (known !== undefined) return known;
    const stored = this.#entries.find(this.#key, this.#kind, String(id));
    const value = stored === undefined ? undefined : parsed(stored);
    const isValid = SHAPES[this.#kind](value);
    const entry = { value: isValid ? (value as Value) : undefined, stored };
    this.#read.set(id, entry);
    return entry;
  }
}

/** An entry of another shape counts as missing. */
const SHAPES: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  member: value => hasNumbers(value, "pending", "leaseUs", "entry", "entryUs"),
  turn: value => typeof value === "string",
  lease: value => hasNumbers(value, "checkUs"),
};

function hasNumbers(value: unknown, ...names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  return names.every(name => Number.isFinite((value as Readonly<Record<string, unknown>>)[name]));
}

/** Undefined for an entry that is no JSON: it counts as missing. */
function parsed(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

function shiftedEntry(entry: unknown, byUs: number): unknown {
  if (typeof entry !== "object" || entry === null) return entry;
  return Object.fromEntries(
    Object.entries(entry).map(([name, value]) => {
      if (name === "turn") return [name, shiftedEntry(value, byUs)];
      return [name, name.endsWith("Us") && typeof value === "number" ? value + byUs : value];
    }),
  );
}
