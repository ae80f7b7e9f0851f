import type { StoredRecord } from "../records.ts";
import type { PostgresClient } from "./postgres-client.ts";
import type { SqlRow } from "./postgres-driver.ts";
import { CLOCK_US } from "./postgres-literal.ts";

/** A record as it is in the table, with the time of the server. */
export interface FoundRecord {
  /** Undefined if there is no record, or it cannot be parsed. */
  readonly stored: StoredRecord | undefined;
  readonly text: unknown;
  /** 0 if there is no record. */
  readonly version: number;
  readonly nowUs: number;
}

const READ = `SELECT record, keep_until_us, version, ${CLOCK_US} AS now_us
  FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, place) LEFT JOIN records USING (name) ORDER BY place`;

/** One statement reads at most this many records. */
const READ_MAX = 256;

/**
 * Reads rows of records. Statements run one after the other, so names that are wanted while a statement is in flight share
 * the next one: with a distant server and many hosts, each of them would otherwise wait for all others.
 */
export class RecordRows {
  readonly #client: Pick<PostgresClient, "query">;
  readonly #wanted = new Map<string, PromiseWithResolvers<FoundRecord>>();
  #isReading = false;

  constructor(client: Pick<PostgresClient, "query">) {
    this.#client = client;
  }

  find(name: string): Promise<FoundRecord> {
    const wanted = this.#wanted.get(name) ?? Promise.withResolvers<FoundRecord>();
    this.#wanted.set(name, wanted);
    if (!this.#isReading) {
      this.#isReading = true;
      // Names of the same turn of the event loop share a statement too.
      queueMicrotask(() => void this.#readAll());
    }
    return wanted.promise;
  }

  async #readAll(): Promise<void> {
    while (this.#wanted.size > 0) {
      const batch = [...this.#wanted].slice(0, READ_MAX);
      for (const [name] of batch) this.#wanted.delete(name);
      try {
        const [result] = await this.#client.query(READ, [batch.map(([name]) => name)]);
        for (const [index, [, { resolve }]] of batch.entries()) resolve(rowOf(result?.rows[index]));
      } catch (error) {
        for (const [, { reject }] of batch) reject(error);
      }
    }
    this.#isReading = false;
  }
}

export function rowOf(row: SqlRow = {}): FoundRecord {
  const { record, version, now_us: nowUs } = row;
  const isFound = record !== null && record !== undefined;
  return {
    stored: isFound ? storedOf(row) : undefined,
    text: record,
    version: isFound ? Number(version) : 0,
    nowUs: Number(nowUs ?? 0),
  };
}

/** Undefined for a record that cannot be parsed: it concerns one host, and the next write replaces it. */
export function storedOf(row: SqlRow): StoredRecord | undefined {
  try {
    return { record: JSON.parse(String(row["record"])), keepUntilUs: Number(row["keep_until_us"]) };
  } catch {
    return undefined;
  }
}
