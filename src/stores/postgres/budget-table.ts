import { type BudgetMember, type BudgetTables, emptyTables, type LeaseEntry } from "../../core/limits/budget-tables.ts";
import { type BudgetState, SharedBudget } from "../../core/limits/shared-budget.ts";
import type { Budgets } from "../exchange.ts";
import type { SqlRow } from "./postgres-driver.ts";
import { literal } from "./postgres-literal.ts";

/** How long a row is kept beyond the longest window and the lease. */
const KEPT_US = 60_000_000;

/** The tables of a budget with all their entries: a row has the whole budget. */
interface StoredTables extends BudgetTables {
  readonly members: Map<string, BudgetMember>;
  readonly turns: Map<number, string>;
  readonly leases: Map<number, LeaseEntry>;
}

interface OpenBudget {
  readonly budget: SharedBudget;
  readonly tables: StoredTables;
}

/** The budgets of one transaction: read with their locks held, and written back at its end. */
export class BudgetTable implements Budgets {
  readonly #budgets = new Map<string, OpenBudget>();

  /** @param rows with the columns `key` and `state` */
  constructor(rows: readonly SqlRow[]) {
    for (const { key, state } of rows) this.#budgets.set(String(key), parsed(String(state)));
  }

  find(key: string): SharedBudget | undefined {
    return this.#budgets.get(key)?.budget;
  }

  open(key: string): SharedBudget {
    const existing = this.find(key);
    if (existing !== undefined) return existing;
    const tables = emptyTables() as StoredTables;
    const budget = new SharedBudget(undefined, tables);
    this.#budgets.set(key, { budget, tables });
    return budget;
  }

  /** The statement that writes all budgets; empty if there are none. */
  saved(nowUs: number, leaseUs: number): string {
    const rows = Array.from(this.#budgets, ([key, { budget, tables }]) => {
      const state = budget.dump();
      const spanUs = Math.max(leaseUs, ...state.windows.map(window => window.spanUs));
      const keepUntilUs = Math.max(nowUs + spanUs, state.aliveUs) + KEPT_US;
      return `(${literal(key)}, ${literal(textOf(state, tables))}, ${literal(keepUntilUs)})`;
    });
    if (rows.length === 0) return "";
    return `INSERT INTO budgets (key, state, expires_us) VALUES ${rows.join(", ")}
      ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires_us = excluded.expires_us;`;
  }
}

function textOf(state: BudgetState, { members, turns, leases }: StoredTables): string {
  const tables = { members: [...members], turns: [...turns], leases: [...leases] };
  return JSON.stringify({ state, tables }, (_, value: unknown) =>
    value instanceof Float64Array ? Array.from(value) : value,
  );
}

function parsed(text: string): OpenBudget {
  const { state, tables: entries } = JSON.parse(text) as {
    readonly state: BudgetState;
    readonly tables: Readonly<Record<keyof BudgetTables, readonly (readonly [never, never])[]>>;
  };
  const rings = state.log.rings?.map(ring => Float64Array.from(ring));
  const tables = {
    members: new Map<string, BudgetMember>(entries.members),
    turns: new Map<number, string>(entries.turns),
    leases: new Map<number, LeaseEntry>(entries.leases),
  };
  return { budget: new SharedBudget({ ...state, log: { ...state.log, rings } }, tables), tables };
}
