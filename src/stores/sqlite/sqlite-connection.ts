import { messageOf, StoreError } from "../../errors.ts";
import { type Budgets, type ExchangeContext, settleAll } from "../exchange.ts";
import type { RecordTable } from "../records.ts";
import { BUDGET_ENTRIES_TABLE } from "./budget-entries.ts";
import { type DatabaseFormat, identityOf, inTransaction, type OpenedDatabase } from "./database-file.ts";
import type { MachineInstant } from "./machine-instant.ts";
import { BUDGETS_TABLE, SqliteBudgets } from "./sqlite-budgets.ts";
import { PROCESSES_TABLE, SqliteProcesses } from "./sqlite-processes.ts";
import { RECORD_TABLES, RENAMED_RECORDS, SqliteRecords } from "./sqlite-records.ts";
import type { QueuedTransaction } from "./transaction-queue.ts";

/** A change of the stored data adds a migration here. A released migration never changes. */
export const STORE_FORMAT: DatabaseFormat = {
  // ASCII "dtkb".
  applicationId: 0x64_74_6b_62,
  migrations: [BUDGETS_TABLE + PROCESSES_TABLE, RECORD_TABLES, RENAMED_RECORDS, BUDGET_ENTRIES_TABLE],
};

export interface ConnectionOptions {
  readonly leaseUs: number;
  /** Called when a damaged row was removed. */
  readonly onTrouble: (error: StoreError) => void;
}

/** The tables during one transaction. */
export interface SqliteTables {
  readonly budgets: Budgets;
  readonly records: RecordTable;
  readonly context: ExchangeContext;
}

/** The path names another file now, which the other processes share. */
export class FileMovedError extends Error {}

/** The tables of the store in one open file. */
export class SqliteConnection {
  readonly file: OpenedDatabase;
  readonly #path: string;
  readonly #process: string;
  readonly #leaseUs: number;
  readonly #budgets: SqliteBudgets;
  readonly #records: SqliteRecords;
  readonly #processes: SqliteProcesses;
  /** The number of processes that share the file, as of the last transaction. */
  processCount = 1;

  /** Throws a StoreError for a file that has our `application_id` but lacks our tables. */
  static on(file: OpenedDatabase, path: string, process: string, options: ConnectionOptions): SqliteConnection {
    try {
      return new SqliteConnection(file, path, process, options);
    } catch (error) {
      file.db.close();
      throw new StoreError(`cannot use the store ${path}: ${messageOf(error)}`, { cause: error });
    }
  }

  private constructor(file: OpenedDatabase, path: string, process: string, { leaseUs, onTrouble }: ConnectionOptions) {
    this.file = file;
    this.#path = path;
    this.#process = process;
    this.#leaseUs = leaseUs;
    this.#budgets = new SqliteBudgets(file.db, message => onTrouble(new StoreError(`${path}: ${message}`)));
    this.#records = new SqliteRecords(file.db);
    this.#processes = new SqliteProcesses(file.db, process, leaseUs);
  }

  /** Returns the result of each call. Throws at once if another process is writing; then nothing was changed. */
  transact(calls: readonly QueuedTransaction[], clock: () => MachineInstant): readonly unknown[] {
    return inTransaction(this.file.db, "BEGIN IMMEDIATE", () => {
      this.#checkFile();
      // The clock is read while the lock is held, so that the stamps of all processes are in order.
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
      this.processCount = this.#processes.record(now);
      return results;
    });
  }

  /** Reads records without a transaction: a process that writes does not block it. */
  read<Value>(run: (records: SqliteRecords) => Value): Value {
    this.#checkFile();
    return run(this.#records);
  }

  /** Removes this process from the table if the file is not locked, then closes the file. */
  close(): void {
    try {
      inTransaction(this.file.db, "BEGIN IMMEDIATE", () => this.#processes.leave());
    } catch {
      // The file is locked or not writable. The other processes stop counting this one when its lease ends.
    }
    this.drop();
  }

  #checkFile(): void {
    if (identityOf(this.#path) !== this.file.identity) throw new FileMovedError(`${this.#path} was moved or deleted`);
  }

  /** Closes the file and leaves the table of processes as it is. */
  drop(): void {
    if (this.file.db.isOpen) this.file.db.close();
  }
}
