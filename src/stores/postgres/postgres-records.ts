import { recordAt, recordsAt } from "../records.ts";
import { LISTED_MAX, type RecordStore, type RecordUpdate, type StoreRecord } from "../store.ts";
import type { PostgresClient } from "./postgres-client.ts";
import { CLOCK_US, storableKey } from "./postgres-literal.ts";
import { type FoundRecord, RecordRows, rowOf, storedOf } from "./record-rows.ts";

/**
 * The first version of a record is random. If it were 1, a record that was deleted and created again could have the
 * version that a process read before.
 */
const FIRST_VERSION = "1 + floor(random() * 4503599627370496)::bigint";
const WRITE = `WITH written AS (
    INSERT INTO records (name, record, keep_until_us, version) VALUES ($1, $2, $3, ${FIRST_VERSION})
    ON CONFLICT (name) DO UPDATE SET record = excluded.record, keep_until_us = excluded.keep_until_us,
      version = records.version + 1 WHERE records.version = $4 RETURNING 1)
  SELECT record, keep_until_us, version, ${CLOCK_US} AS now_us, EXISTS (SELECT FROM written) AS is_written
  FROM (SELECT) AS one LEFT JOIN records ON name = $1`;

interface RecordWrite {
  readonly text: string;
  readonly keepUntilUs: number;
  /** The version that was read; 0 if there was no record. */
  readonly version: number;
}

/** The records of a store. A change is written only if the record still has the version that was read. */
export class PostgresRecords implements RecordStore {
  readonly #client: PostgresClient;
  readonly #rows: RecordRows;
  readonly #serverUs: (() => number) | undefined;

  constructor(client: PostgresClient, serverUs: (() => number) | undefined) {
    this.#client = client;
    this.#rows = new RecordRows(client);
    this.#serverUs = serverUs;
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    const { stored, nowUs } = await this.#find(storableKey(name));
    return recordAt(stored, nowUs);
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    const key = storableKey(name);
    let found = await this.#find(key);
    for (;;) {
      const { record: update, result } = step(recordAt(found.stored, found.nowUs));
      if (update === undefined) return result;
      const text = JSON.stringify(update.next);
      const keepUntilUs = Math.round(update.keepUntilUs);
      // An equal record is not written again: the write would be a conflict for every other process.
      if (text === found.text && keepUntilUs === found.stored?.keepUntilUs) return result;
      const { version } = found;
      const written = await this.#replace(key, { text, keepUntilUs, version });
      if (written.isWritten) return result;
      // The process that was faster had not committed when this statement began.
      found = written.version === version ? await this.#find(key) : written;
    }
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    const [result] = await this.#client.query(
      `SELECT name, record, keep_until_us, ${CLOCK_US} AS now_us FROM records WHERE name >= $1 AND name < $2
       ORDER BY name LIMIT ${LISTED_MAX}`,
      [prefix, `${prefix}\u{10ffff}`],
    );
    const rows = result?.rows ?? [];
    const nowUs = this.#serverUs?.() ?? Number(rows[0]?.["now_us"] ?? 0);
    return recordsAt(
      rows.flatMap(row => {
        const stored = storedOf(row);
        return stored === undefined ? [] : [{ name: String(row["name"]), ...stored }];
      }),
      nowUs,
    );
  }

  async #find(name: string): Promise<FoundRecord> {
    return this.#atTestTime(await this.#rows.find(name));
  }

  /** Replaces the record if it still has the version. Returns it as it was before. */
  async #replace(name: string, { text, keepUntilUs, version }: RecordWrite) {
    const [result] = await this.#client.query(WRITE, [name, text, keepUntilUs, version]);
    const [row] = result?.rows ?? [];
    return { ...this.#atTestTime(rowOf(row)), isWritten: row?.["is_written"] === true };
  }

  #atTestTime(row: FoundRecord): FoundRecord {
    return { ...row, nowUs: this.#serverUs?.() ?? row.nowUs };
  }
}
