import { recordAt, recordsAt } from "../records.ts";
import { LISTED_MAX, type RecordStore, type RecordUpdate, type StoreRecord } from "../store.ts";
import type { PostgresClient } from "./postgres-client.ts";
import type { SqlRow } from "./postgres-driver.ts";
import { CLOCK_US } from "./postgres-literal.ts";

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
    for (;;) {
      const { stored, version, nowUs } = await this.#find(name);
      const { record: update, result } = step(recordAt(stored, nowUs));
      if (update === undefined) return result;
      const [written] = await this.#client.query(
        `INSERT INTO records (name, record, keep_until_us, version) VALUES ($1, $2, $3, 1)
         ON CONFLICT (name) DO UPDATE SET record = excluded.record, keep_until_us = excluded.keep_until_us,
           version = records.version + 1 WHERE records.version = $4`,
        [name, JSON.stringify(update.next), Math.round(update.keepUntilUs), version],
      );
      if (written?.rowCount === 1) return result;
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
      rows.map(row => ({ name: String(row["name"]), ...storedOf(row) })),
      nowUs,
    );
  }

  async #find(name: string) {
    const [result] = await this.#client.query(
      `SELECT record, keep_until_us, version, ${CLOCK_US} AS now_us FROM (SELECT) AS one
       LEFT JOIN records ON name = $1`,
      [name],
    );
    const row = result?.rows[0] ?? {};
    const isFound = row["record"] !== null && row["record"] !== undefined;
    return {
      stored: isFound ? storedOf(row) : undefined,
      version: isFound ? Number(row["version"]) : 0,
      nowUs: this.#nowUs(row),
    };
  }

  #nowUs(row: SqlRow | undefined): number {
    return this.#serverUs?.() ?? Number(row?.["now_us"] ?? 0);
  }
}

function storedOf(row: SqlRow) {
  return { record: JSON.parse(String(row["record"])) as unknown, keepUntilUs: Number(row["keep_until_us"]) };
}
