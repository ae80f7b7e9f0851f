import type { RecordTable, StoredRecord } from "../records.ts";
import { LISTED_MAX } from "../store.ts";
import { MapSweeper } from "./map-sweeper.ts";

export class MemoryRecords implements RecordTable {
  readonly #records = new Map<string, StoredRecord>();
  readonly #sweeper = new MapSweeper(this.#records, ({ keepUntilUs }, nowUs) => keepUntilUs <= nowUs);

  find(name: string): StoredRecord | undefined {
    return this.#records.get(name);
  }

  put(name: string, record: StoredRecord): void {
    this.#records.set(name, record);
  }

  list(prefix: string): readonly (StoredRecord & { readonly name: string })[] {
    const found: (StoredRecord & { readonly name: string })[] = [];
    for (const [name, stored] of this.#records) {
      if (name.startsWith(prefix) && found.length < LISTED_MAX) found.push({ name, ...stored });
    }
    return found;
  }

  /** Removes all records, as a server that restarts without its data does. */
  clear(): void {
    this.#records.clear();
  }

  evictSome(nowUs: number): void {
    this.#sweeper.sweep(nowUs);
  }
}
