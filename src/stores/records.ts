/** Records of backends that give one process at a time exclusive access. */
import type { RecordUpdate, StoreRecord } from "./store.ts";

export interface StoredRecord {
  readonly record: unknown;
  readonly keepUntilUs: number;
}

/** The records during one transaction. */
export interface RecordTable {
  find(name: string): StoredRecord | undefined;
  put(name: string, record: StoredRecord): void;
  list(prefix: string): readonly (StoredRecord & { readonly name: string })[];
}

export function changeRecord<Value, Result>(
  records: RecordTable,
  name: string,
  nowUs: number,
  step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
): Result {
  const { record: update, result } = step(recordAt(records.find(name), nowUs));
  if (update !== undefined) records.put(name, { record: update.next, keepUntilUs: update.keepUntilUs });
  return result;
}

export function recordAt<Value>(stored: StoredRecord | undefined, nowUs: number): StoreRecord<Value> {
  const isCurrent = stored !== undefined && stored.keepUntilUs > nowUs;
  return { record: isCurrent ? (stored.record as Value) : undefined, nowUs };
}

/** The records that have not expired. */
export function recordsAt<Value>(
  found: readonly (StoredRecord & { readonly name: string })[],
  nowUs: number,
): readonly (StoreRecord<Value> & { readonly name: string })[] {
  return found
    .map(({ name, ...stored }) => ({ name, ...recordAt<Value>(stored, nowUs) }))
    .filter(({ record }) => record !== undefined);
}

/** Adds `byUs` to every field whose name ends in `Us`, at any depth. 0 stays 0: it stands for "never". */
export function shiftInstants<Value>(value: Value, byUs: number): Value {
  if (Array.isArray(value)) return value.map(item => shiftInstants(item, byUs)) as Value;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isInstant = key.endsWith("Us") && typeof inner === "number" && inner !== 0;
      return [key, isInstant ? inner + byUs : shiftInstants(inner, byUs)];
    }),
  ) as Value;
}
