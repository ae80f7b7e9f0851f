import { recordAt, recordsAt, type StoredRecord } from "../records.ts";
import { LISTED_MAX, type RecordStore, type RecordUpdate, type StoreRecord } from "../store.ts";
import type { PostgresClient } from "./postgres-client.ts";
import type { SqlRow } from "./postgres-driver.ts";
import { CLOCK_US } from "./postgres-literal.ts";

/**
 * The first version of a record is random. If it were 1, a record that was deleted and created again could have the
 * version that a process read before.
 */
const FIRST_VERSION = "1 + floor(random() * 4503599627370496)::bigint";
const READ = `SELECT record, keep_until_us, version, ${CLOCK_US} AS now_us, false AS is_written FROM (SELECT) AS one`;
const WRITE = `WITH written AS (
    INSERT INTO records (name, record, keep_until_us, version) VALUES ($1, $2, $3, ${FIRST_VERSION})
    ON CONFLICT (name) DO UPDATE SET record = excluded.record, keep_until_us = excluded.keep_until_us,
      version = records.version + 1 WHERE records.version = $4 RETURNING 1)
  SELECT record, keep_until_us, version, ${CLOCK_US} AS now_us, EXISTS (SELECT FROM written) AS is_written
  FROM (SELECT) AS one`;

interface RecordWrite {
  readonly text: string;
  readonly keepUntilUs: number;
  /** The version that was read; 0 if there was no record. */
  readonly version: number;
}

/** The records of a store. A change is written only if the record still has the version that was read. */
export class PostgresRecords implements RecordStore {
  readonly #client: PostgresClient;
  readonly #serverUs: (() => number) | undefined;

  constructor(client: PostgresClient, serverUs: (() => number) | undefined) {
    this.#client = client;
    this.#serverUs = serverUs;
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    const { stored, nowUs } = await this.#find(name);
    return recordAt(stored, nowUs);
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    let found = await this.#find(name);
    for (;;) {
      const { record: update, result } = step(recordAt(found.stored, found.nowUs));
      if (update === undefined) return result;
      const text = JSON.stringify(update.next);
      const keepUntilUs = Math.round(update.keepUntilUs);
      // An equal record is not written again: the write would be a conflict for every other process.
      if (text === found.text && keepUntilUs === found.stored?.keepUntilUs) return result;
      const { version } = found;
      found = await this.#find(name, { text, keepUntilUs, version });
      if (found.isWritten) return result;
      // The process that was faster had not committed when this statement began.
      if (found.version === version) found = await this.#find(name);
    }
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    const [result] = await this.#client.query(
      `SELECT name, record, keep_until_us, ${CLOCK_US} AS now_us FROM records WHERE name >= $1 AND name < $2
       ORDER BY name LIMIT ${LISTED_MAX}`,
      [prefix, `${prefix}\u{10ffff}`],
    );
    const rows = result?.rows ?? [];
    const nowUs = this.#nowUs(rows[0]);
    return recordsAt(
      rows.flatMap(row => {
        const stored = storedOf(row);
        return stored === undefined ? [] : [{ name: String(row["name"]), ...stored }];
      }),
      nowUs,
    );
  }

  /** The record as it is, or as it was before `update` replaced it. Nothing is replaced if the version is another one. */
  async #find(name: string, update?: RecordWrite) {
    const parameters = update ? [name, update.text, update.keepUntilUs, update.version] : [name];
    const [result] = await this.#client.query(`${update ? WRITE : READ} LEFT JOIN records ON name = $1`, parameters);
    const row = result?.rows[0] ?? {};
    const isFound = row["record"] !== null && row["record"] !== undefined;
    return {
      stored: isFound ? storedOf(row) : undefined,
      text: row["record"],
      version: isFound ? Number(row["version"]) : 0,
      nowUs: this.#nowUs(row),
      isWritten: row["is_written"] === true,
    };
  }

  #nowUs(row: SqlRow | undefined): number {
    return this.#serverUs?.() ?? Number(row?.["now_us"] ?? 0);
  }
}

/** Undefined for a record that cannot be parsed: it concerns one host, and the next write replaces it. */
function storedOf(row: SqlRow): StoredRecord | undefined {
  try {
    return { record: JSON.parse(String(row["record"])), keepUntilUs: Number(row["keep_until_us"]) };
  } catch {
    return undefined;
  }
}
