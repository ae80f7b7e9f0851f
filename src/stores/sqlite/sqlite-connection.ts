import { StoreError } from "../../errors.ts";
import { type Budgets, type ExchangeContext, settleAll } from "../exchange.ts";
import type { RecordTable } from "../records.ts";
import type { MachineInstant } from "./budget-row.ts";
import { type DatabaseFormat, identityOf, inTransaction, type OpenedDatabase } from "./database-file.ts";
import { BUDGETS_TABLE, SqliteBudgets } from "./sqlite-budgets.ts";
import { messageOf } from "./sqlite-errors.ts";
import { PROCESSES_TABLE, SqliteProcesses } from "./sqlite-processes.ts";
import { RECORD_TABLES, RENAMED_RECORDS, SqliteRecords } from "./sqlite-records.ts";
import type { QueuedTransaction } from "./transaction-queue.ts";

/** Whoever changes what is kept adds a migration, and never alters one. */
export const STORE_FORMAT: DatabaseFormat = {
  // "dtkb".
  applicationId: 0x64_74_6b_62,
  migrations: [BUDGETS_TABLE + PROCESSES_TABLE, RECORD_TABLES, RENAMED_RECORDS],
};

/** What there is to work on during a transaction. */
export interface SqliteTables {
  readonly budgets: Budgets;
  readonly records: RecordTable;
  readonly context: ExchangeContext;
}

/** Its file is no longer where it was: others share another one by now. */
export class FileMovedError extends Error {}

/** The store's tables in one open file, and what is done with them in one transaction. */
export class SqliteConnection {
  readonly file: OpenedDatabase;
  readonly #path: string;
  readonly #process: string;
  readonly #leaseUs: number;
  readonly #budgets: SqliteBudgets;
  readonly #records: SqliteRecords;
  readonly #processes: SqliteProcesses;
  /** How many were seen when it was last counted. */
  processes = 1;

  /** A file that says it is ours and lacks our tables is of no use. */
  static on(file: OpenedDatabase, path: string, process: string, leaseUs: number): SqliteConnection {
    try {
      return new SqliteConnection(file, path, process, leaseUs);
    } catch (error) {
      file.db.close();
      throw new StoreError(`the store ${path} cannot be used: ${messageOf(error)}`, { cause: error });
    }
  }

  private constructor(file: OpenedDatabase, path: string, process: string, leaseUs: number) {
    this.file = file;
    this.#path = path;
    this.#process = process;
    this.#leaseUs = leaseUs;
    this.#budgets = new SqliteBudgets(file.db);
    this.#records = new SqliteRecords(file.db);
    this.#processes = new SqliteProcesses(file.db, process, leaseUs);
  }

  /** What each call comes to. Throws at once when another process is writing; then nothing was done. */
  transact(calls: readonly QueuedTransaction[], clock: () => MachineInstant): readonly unknown[] {
    return inTransaction(this.file.db, "BEGIN IMMEDIATE", () => {
      this.#checkFile();
      // Read when the file is ours, so that the stamps of all processes rise.
      const now = clock();
      const context: ExchangeContext = { process: this.#process, nowUs: now.machineUs, leaseUs: this.#leaseUs };
      this.#budgets.begin(now);
      settleAll(
        this.#budgets,
        calls.flatMap(({ settlements }) => settlements),
        context,
      );
      const tables: SqliteTables = { budgets: this.#budgets, records: this.#records.at(now), context };
      const results = calls.map(({ run }) => run(tables));
      this.#budgets.save();
      this.processes = this.#processes.record(now);
      return results;
    });
  }

  /** Looks at notes without a transaction: whoever writes is not in the way. */
  read<Value>(run: (records: SqliteRecords) => Value): Value {
    this.#checkFile();
    return run(this.#records);
  }

  /** Says goodbye if it can do so at once. */
  close(): void {
    try {
      inTransaction(this.file.db, "BEGIN IMMEDIATE", () => this.#processes.leave());
    } catch {
      // Somebody is writing, or nobody can. The others will notice when the lease is over.
    }
    this.drop();
  }

  #checkFile(): void {
    if (identityOf(this.#path) !== this.file.identity) throw new FileMovedError(`${this.#path} was moved or deleted`);
  }

  /** Lets go of a file that is of no use any more. */
  drop(): void {
    if (this.file.db.isOpen) this.file.db.close();
  }
}
