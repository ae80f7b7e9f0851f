/** Notes where one process at a time has hold of them: what a step does, and what a new start of the clock does. */
import type { RecordUpdate, StoreRecord } from "./store.ts";

export interface StoredRecord {
  readonly record: unknown;
  readonly keepUntilUs: number;
}

/** The notes during one exchange. */
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
  const { record, result } = step(recordAt(records.find(name), nowUs));
  if (record !== undefined) records.put(name, { record: record.next, keepUntilUs: record.keepUntilUs });
  return result;
}

export function recordAt<Value>(kept: StoredRecord | undefined, nowUs: number): StoreRecord<Value> {
  const isKept = kept !== undefined && kept.keepUntilUs > nowUs;
  return { record: isKept ? (kept.record as Value) : undefined, nowUs };
}

/** Those that are still kept. */
export function recordsAt<Value>(
  found: readonly (StoredRecord & { readonly name: string })[],
  nowUs: number,
): readonly (StoreRecord<Value> & { readonly name: string })[] {
  return found
    .map(({ name, ...kept }) => ({ name, ...recordAt<Value>(kept, nowUs) }))
    .filter(({ record }) => record !== undefined);
}

/** Every instant in it moved: fields whose names end in `Us`, however deep. 0 stays 0, which is no instant. */
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
