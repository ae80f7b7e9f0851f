import { StoreError } from "../../errors.ts";
import { type Budgets, type Contact, settleAll } from "../exchange.ts";
import type { Notes } from "../records.ts";
import type { Moment } from "./budget-row.ts";
import { type FileFormat, identityOf, inTransaction, type OpenedFile } from "./database-file.ts";
import { BUDGETS_TABLE, SqliteBudgets } from "./sqlite-budgets.ts";
import { messageOf } from "./sqlite-errors.ts";
import { PROCESSES_TABLE, SqliteProcesses } from "./sqlite-processes.ts";
import { NOTES_TABLES, SqliteNotes } from "./sqlite-records.ts";
import type { WaitingCall } from "./transaction-queue.ts";

/** Whoever changes what is kept adds a migration, and never alters one. */
export const STORE_FORMAT: FileFormat = {
  // "dtkb".
  applicationId: 0x64_74_6b_62,
  migrations: [BUDGETS_TABLE + PROCESSES_TABLE, NOTES_TABLES],
};

/** What there is to work on during a transaction. */
export interface SqliteTables {
  readonly budgets: Budgets;
  readonly notes: Notes;
  readonly contact: Contact;
}

/** Its file is no longer where it was: others share another one by now. */
export class MovedError extends Error {}

/** The store's tables in one open file, and what is done with them in one transaction. */
export class SqliteConnection {
  readonly file: OpenedFile;
  readonly #path: string;
  readonly #process: string;
  readonly #leaseUs: number;
  readonly #budgets: SqliteBudgets;
  readonly #notes: SqliteNotes;
  readonly #processes: SqliteProcesses;
  /** How many were seen when it was last counted. */
  processes = 1;

  /** A file that says it is ours and lacks our tables is of no use. */
  static on(file: OpenedFile, path: string, process: string, leaseUs: number): SqliteConnection {
    try {
      return new SqliteConnection(file, path, process, leaseUs);
    } catch (error) {
      file.db.close();
      throw new StoreError(`the store ${path} cannot be used: ${messageOf(error)}`, { cause: error });
    }
  }

  private constructor(file: OpenedFile, path: string, process: string, leaseUs: number) {
    this.file = file;
    this.#path = path;
    this.#process = process;
    this.#leaseUs = leaseUs;
    this.#budgets = new SqliteBudgets(file.db);
    this.#notes = new SqliteNotes(file.db);
    this.#processes = new SqliteProcesses(file.db, process, leaseUs);
  }

  /** What each call comes to. Throws at once when another process is writing; then nothing was done. */
  transact(calls: readonly WaitingCall[], clock: () => Moment): readonly unknown[] {
    return inTransaction(this.file.db, "BEGIN IMMEDIATE", () => {
      this.#checkPlace();
      // Read when the file is ours, so that the stamps of all processes rise.
      const now = clock();
      const contact: Contact = { process: this.#process, nowUs: now.machineUs, leaseUs: this.#leaseUs };
      this.#budgets.begin(now);
      settleAll(
        this.#budgets,
        calls.flatMap(({ settlements }) => settlements),
        contact,
      );
      const tables: SqliteTables = { budgets: this.#budgets, notes: this.#notes.at(now), contact };
      const results = calls.map(({ act }) => act(tables));
      this.#budgets.save();
      this.processes = this.#processes.note(now);
      return results;
    });
  }

  /** Looks at notes without a transaction: whoever writes is not in the way. */
  look<Value>(act: (notes: SqliteNotes) => Value): Value {
    this.#checkPlace();
    return act(this.#notes);
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

  #checkPlace(): void {
    if (identityOf(this.#path) !== this.file.identity) throw new MovedError(`${this.#path} was moved or deleted`);
  }

  /** Lets go of a file that is of no use any more. */
  drop(): void {
    if (this.file.db.isOpen) this.file.db.close();
  }
}
