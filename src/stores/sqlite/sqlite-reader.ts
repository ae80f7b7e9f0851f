import { backoffMs } from "../../core/breaker/backoff.ts";
import { messageOf, StoreError } from "../../errors.ts";
import { pause } from "../../time/pause.ts";
import type { Time } from "../../time/time.ts";
import { recordAt, recordsAt } from "../records.ts";
import type { RecordReader, StoreRecord } from "../store.ts";
import { inTransaction, versionOf } from "./database-file.ts";
import { machineBootId } from "./machine-boot.ts";
import type { MachineInstant } from "./machine-instant.ts";
import { ReadOnlyFile } from "./read-only-file.ts";
import { STORE_FORMAT } from "./sqlite-connection.ts";
import { isBusy, isUnusablePath } from "./sqlite-errors.ts";
import { SqliteRecords } from "./sqlite-records.ts";

/** How long a read is repeated while the file is locked: a writer locks readers out only while it opens or closes the file. */
const TIMEOUT_MS = 500;
const PAUSE = { baseMs: 1, capMs: 20 };

/**
 * Reads the records of a store file that other processes write. The file is opened read-only: it is neither created nor
 * migrated, and its permissions are not changed. Reading takes no write lock, so a user who may not write the file can
 * read it.
 */
export class SqliteReader implements RecordReader {
  readonly #path: string;
  readonly #time: Time;
  readonly #boot = machineBootId();
  readonly #file: ReadOnlyFile<SqliteRecords>;
  #isClosed = false;

  constructor(path: string, time: Time) {
    this.#path = path;
    this.#time = time;
    this.#file = new ReadOnlyFile(path, db => {
      const version = inTransaction(db, "BEGIN", () => versionOf(db, STORE_FORMAT));
      if (version < STORE_FORMAT.migrations.length)
        throw new StoreError(
          `${path} was written by an older version of docstokg; the first process of this version that shares it will migrate it`,
        );
      return new SqliteRecords(db);
    });
  }

  read<Value>(name: string): Promise<StoreRecord<Value>> {
    return this.#reading((records, now) => recordAt<Value>(records.find(name, now), now.machineUs));
  }

  list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    return this.#reading((records, now) => recordsAt<Value>(records.list(prefix, now), now.machineUs));
  }

  close(): void {
    this.#isClosed = true;
    this.#file.close();
  }

  async #reading<Value>(run: (records: SqliteRecords, now: MachineInstant) => Value): Promise<Value> {
    const deadlineUs = this.#time.monotonicUs() + TIMEOUT_MS * 1000;
    for (let attempt = 1; ; attempt += 1) {
      try {
        using connection = this.#file.connect();
        const now = { boot: this.#boot, machineUs: this.#time.machineUs(), wallMs: this.#time.wallMs() };
        return run(connection.content, now);
      } catch (error) {
        this.#file.close();
        if (error instanceof StoreError) throw error;
        if (!isBusy(error) || this.#time.monotonicUs() >= deadlineUs) throw this.#unreadable(error);
      } finally {
        // A read that has waited for a lock opens the file again.
        if (this.#isClosed) this.#file.close();
      }
      await pause(this.#time, backoffMs(PAUSE, attempt, 0, 1));
    }
  }

  #unreadable(cause: unknown): StoreError {
    const advice = isUnusablePath(cause) ? "; check that the file exists and that this user may read it" : "";
    return new StoreError(`cannot read ${this.#path}: ${messageOf(cause)}${advice}`, { cause });
  }
}
