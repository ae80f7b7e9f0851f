import type { RecordTable, StoredRecord } from "../records.ts";
import { LISTED_MAX } from "../store.ts";

/** How many records each change checks for expiry, so that no call scans the whole table. */
const SWEPT_AT_ONCE = 2;

export class MemoryRecords implements RecordTable {
  readonly #records = new Map<string, StoredRecord>();
  #sweep = this.#records.entries();

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

  evictSome(nowUs: number): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept += 1) {
      const { done, value } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#records.entries();
        return;
      }
      const [name, { keepUntilUs }] = value;
      if (keepUntilUs <= nowUs) this.#records.delete(name);
    }
  }
}
