import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { MachineInstant } from "./budget-row.ts";

export const PROCESSES_TABLE = `
  CREATE TABLE processes (
    name TEXT PRIMARY KEY NOT NULL,
    pid INTEGER NOT NULL,
    boot TEXT NOT NULL,
    seen_us INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL
  );
`;

/** Being seen to the second is plenty, and spares writes. */
const RECORD_EVERY_US = 1_000_000;

/** The table of those who use the store: a line for each, so that the others know how many share it. */
export class SqliteProcesses {
  readonly #upsert: StatementSync;
  readonly #forget: StatementSync;
  readonly #count: StatementSync;
  readonly #delete: StatementSync;
  readonly #name: string;
  readonly #leaseUs: number;
  #recordedUs = Number.NEGATIVE_INFINITY;

  constructor(db: DatabaseSync, name: string, leaseUs: number) {
    this.#name = name;
    this.#leaseUs = leaseUs;
    this.#upsert = db.prepare(
      "INSERT OR REPLACE INTO processes (name, pid, boot, seen_us, seen_ms) VALUES (?, ?, ?, ?, ?)",
    );
    // What lies ahead of the clock is from an earlier start of the machine.
    this.#forget = db.prepare("DELETE FROM processes WHERE boot <> ? OR seen_us <= ? OR seen_us > ?");
    this.#count = db.prepare("SELECT count(*) AS seen FROM processes");
    this.#delete = db.prepare("DELETE FROM processes WHERE name = ?");
  }

  /** Within a transaction: notes that this one was seen, and answers how many were within a lease. */
  record({ boot, machineUs, wallMs }: MachineInstant): number {
    if (machineUs - this.#recordedUs >= Math.min(RECORD_EVERY_US, this.#leaseUs / 4)) {
      this.#upsert.run(this.#name, process.pid, boot, machineUs, wallMs);
      this.#forget.run(boot, machineUs - this.#leaseUs, machineUs);
      this.#recordedUs = machineUs;
    }
    return Number(this.#count.get()?.["seen"] ?? 1);
  }

  leave(): void {
    this.#delete.run(this.#name);
  }
}
