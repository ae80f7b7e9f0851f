import type { DatabaseSync, StatementSync } from "node:sqlite";
import { emptyTables } from "../../core/limits/budget-tables.ts";
import { SharedBudget } from "../../core/limits/shared-budget.ts";
import type { Budgets } from "../exchange.ts";
import { BudgetEntries, OpenBudgetEntries } from "./budget-entries.ts";
import { type BudgetRow, budgetOf, rowOf } from "./budget-row.ts";
import type { MachineInstant } from "./machine-instant.ts";

export const BUDGETS_TABLE = `
  CREATE TABLE budgets (
    key TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL,
    stamps BLOB NOT NULL,
    boot TEXT NOT NULL,
    machine_us INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL
  );
`;

/** For each exchange and for each new budget, two rows are checked for expiry, so that the table does not grow for ever. */
const SWEPT_FOR_EACH = 2;
/** Rows that are checked together, at least and at most: a transaction must be short. */
const SWEPT_MIN = 16;
const SWEPT_MAX = 128;

/** The table of budgets. A transaction reads each budget once, and writes it back at its end. */
export class SqliteBudgets implements Budgets {
  readonly #select: StatementSync;
  readonly #upsert: StatementSync;
  readonly #page: StatementSync;
  readonly #delete: StatementSync;
  readonly #entries: BudgetEntries;
  readonly #onDamage: (message: string) => void;
  readonly #open = new Map<string, { readonly budget: SharedBudget; readonly entries: OpenBudgetEntries }>();
  #now: MachineInstant = { boot: "", machineUs: 0, wallMs: 0 };
  /** Rows to be checked for expiry. */
  #unswept = 0;
  #sweptKey = "";

  /** `onDamage` gets a message when a row was damaged. */
  constructor(db: DatabaseSync, onDamage: (message: string) => void) {
    this.#onDamage = onDamage;
    this.#select = db.prepare("SELECT key, state, stamps, boot, machine_us, wall_ms FROM budgets WHERE key = ?");
    // An update in place: INSERT OR REPLACE would move the row to another page each time.
    this.#upsert = db.prepare(
      `INSERT INTO budgets (key, state, stamps, boot, machine_us, wall_ms) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (key) DO UPDATE SET state = excluded.state, stamps = excluded.stamps, boot = excluded.boot,
          machine_us = excluded.machine_us, wall_ms = excluded.wall_ms`,
    );
    this.#page = db.prepare(
      "SELECT key, state, stamps, boot, machine_us, wall_ms FROM budgets WHERE key > ? ORDER BY key LIMIT ?",
    );
    this.#delete = db.prepare("DELETE FROM budgets WHERE key = ?");
    this.#entries = new BudgetEntries(db);
  }

  /** To be called when a transaction has begun. Drops the budgets that a failed transaction has left in memory. */
  begin(now: MachineInstant): void {
    this.#now = now;
    this.#open.clear();
  }

  find(key: string): SharedBudget | undefined {
    const existing = this.#open.get(key)?.budget;
    if (existing !== undefined) return existing;
    const row = this.#select.get(key) as BudgetRow | undefined;
    if (row === undefined) return undefined;
    const entries = new OpenBudgetEntries(this.#entries, key);
    const budget = budgetOf(row, this.#now, byUs => {
      if (byUs !== 0) this.#entries.shift(key, byUs);
      return entries;
    });
    if (budget === undefined) {
      this.#removeDamaged(key);
      return undefined;
    }
    this.#open.set(key, { budget, entries });
    return budget;
  }

  open(key: string): SharedBudget {
    const existing = this.find(key);
    if (existing !== undefined) return existing;
    // Entries without a budget cannot be used: their numbers belong to a queue that is lost.
    this.#entries.removeAll(key);
    const entries = new OpenBudgetEntries(this.#entries, key);
    const budget = new SharedBudget(undefined, entries);
    this.#unswept += SWEPT_FOR_EACH;
    this.#open.set(key, { budget, entries });
    return budget;
  }

  /** Writes the budgets that were used, and now and then deletes expired rows. */
  save(): void {
    for (const [key, { budget, entries }] of this.#open) {
      const { state, stamps, boot, machine_us, wall_ms } = rowOf(key, budget, this.#now);
      this.#upsert.run(key, state, stamps, boot, machine_us, wall_ms);
      entries.save();
    }
    this.#unswept += SWEPT_FOR_EACH;
    if (this.#unswept >= SWEPT_MIN) this.#sweep(Math.min(this.#unswept, SWEPT_MAX));
    this.#open.clear();
  }

  #remove(key: string): void {
    this.#delete.run(key);
    this.#entries.removeAll(key);
  }

  /** The processes that know the budget notice that it is lost, and report its use. Other budgets are not affected. */
  #removeDamaged(key: string): void {
    this.#remove(key);
    this.#onDamage(`the stored budget "${key}" could not be parsed, and was removed`);
  }

  #sweep(most: number): void {
    this.#unswept -= most;
    const rows = this.#page.all(this.#sweptKey, most) as unknown as readonly BudgetRow[];
    for (const row of rows) {
      if (this.#open.has(row.key)) continue;
      const budget = budgetOf(row, this.#now, emptyTables);
      if (budget === undefined) this.#removeDamaged(row.key);
      else if (budget.isExpired(this.#now.machineUs)) this.#remove(row.key);
    }
    this.#sweptKey = rows.length < most ? "" : (rows.at(-1)?.key ?? "");
  }
}
