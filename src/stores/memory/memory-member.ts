import { StoreError } from "../../errors.ts";
import { changeRecord, recordAt, recordsAt } from "../records.ts";
import type {
  LeaseReply,
  LeaseRequest,
  RecordUpdate,
  Settlement,
  Store,
  StoreRecord,
  StoreSignals,
  UseReport,
} from "../store.ts";
import type { MemoryStore } from "./memory-store.ts";

/** A `MemoryStore` as one of its members uses it. */
export class MemoryMember implements Store {
  readonly processId: string;
  readonly #store: MemoryStore;
  #isClosed = false;

  constructor(store: MemoryStore, processId: string) {
    this.#store = store;
    this.processId = processId;
  }

  get signals(): StoreSignals {
    return this.#store.signals;
  }

  get processes(): number {
    return Math.max(1, this.#store.membersSeen());
  }

  async exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): Promise<readonly LeaseReply[]> {
    this.#checkOpen();
    return this.#store.exchange(this.processId, settlements, requests, reports, dead);
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    this.#checkOpen();
    return recordAt(this.#store.records.find(name), this.#store.nowUs);
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    this.#checkOpen();
    const { records, nowUs } = this.#store;
    const result = changeRecord(records, name, nowUs, step);
    records.evictSome(nowUs);
    return result;
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    this.#checkOpen();
    return recordsAt(this.#store.records.list(prefix), this.#store.nowUs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#store.leave(this.processId);
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StoreError(`member ${this.processId} of the memory store is closed`);
  }
}
