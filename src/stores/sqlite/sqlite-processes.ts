import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { MachineInstant } from "./machine-instant.ts";

export const PROCESSES_TABLE = `
  CREATE TABLE processes (
    name TEXT PRIMARY KEY NOT NULL,
    pid INTEGER NOT NULL,
    boot TEXT NOT NULL,
    seen_us INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL
  );
`;

/** A process records itself at most this often: counting needs no finer resolution, and each record is a write. */
const RECORD_EVERY_US = 1_000_000;

/** The table of the processes that use the store, so that each knows how many share it. */
export class SqliteProcesses {
  readonly #own: StatementSync;
  readonly #upsert: StatementSync;
  readonly #deleteExpired: StatementSync;
  readonly #count: StatementSync;
  readonly #delete: StatementSync;
  readonly #name: string;
  readonly #leaseUs: number;

  constructor(db: DatabaseSync, name: string, leaseUs: number) {
    this.#name = name;
    this.#leaseUs = leaseUs;
    this.#own = db.prepare("SELECT seen_us FROM processes WHERE name = ? AND boot = ?");
    this.#upsert = db.prepare(
      "INSERT OR REPLACE INTO processes (name, pid, boot, seen_us, seen_ms) VALUES (?, ?, ?, ?, ?)",
    );
    // A row ahead of the clock is from an earlier start of the machine.
    this.#deleteExpired = db.prepare("DELETE FROM processes WHERE boot <> ? OR seen_us <= ? OR seen_us > ?");
    this.#count = db.prepare("SELECT count(*) AS seen FROM processes");
    this.#delete = db.prepare("DELETE FROM processes WHERE name = ?");
  }

  /** Records this process, and returns how many were seen within a lease. To be called within a transaction. */
  record({ boot, machineUs, wallMs }: MachineInstant): number {
    // Read and not remembered: the transaction that made the last record may have been rolled back, as on a full disk.
    const recordedUs = Number(this.#own.get(this.#name, boot)?.["seen_us"] ?? Number.NEGATIVE_INFINITY);
    if (machineUs - recordedUs >= Math.min(RECORD_EVERY_US, this.#leaseUs / 4)) {
      this.#upsert.run(this.#name, process.pid, boot, machineUs, wallMs);
      this.#deleteExpired.run(boot, machineUs - this.#leaseUs, machineUs);
    }
    return Number(this.#count.get()?.["seen"] ?? 1);
  }

  leave(): void {
    this.#delete.run(this.#name);
  }
}
