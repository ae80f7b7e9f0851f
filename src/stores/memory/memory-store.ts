import { SharedBudget } from "../../core/limits/shared-budget.ts";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { type Budgets, leaseAll, settleAll } from "../exchange.ts";
import { changeRecord, type RecordTable, recordAt, recordsAt, type StoredRecord } from "../records.ts";
import {
  LEASE_MS,
  type LeaseReply,
  type LeaseRequest,
  LISTED_MAX,
  type RecordUpdate,
  type Settlement,
  type Store,
  type StoreRecord,
} from "../store.ts";

export interface MemoryStoreOptions {
  /** How long a member that is not heard of keeps what it has out. @default LEASE_MS */
  readonly leaseMs?: number;
}

/** With each exchange so many budgets are looked at, whether they may be forgotten. */
const SWEPT_AT_ONCE = 2;

/** What several hubs of one process share; each is a member of its own. */
export class MemoryStore implements Budgets {
  readonly #time: Time;
  readonly #leaseUs: number;
  readonly #budgets = new Map<string, SharedBudget>();
  readonly #records = new MemoryRecords();
  readonly #seenUs = new Map<string, number>();
  #sweep = this.#budgets.entries();

  constructor(time: Time, { leaseMs = LEASE_MS }: MemoryStoreOptions = {}) {
    this.#time = time;
    this.#leaseUs = leaseMs * 1000;
  }

  /** The store as one member sees it. Members are told apart by their names. */
  member(name: string): Store {
    return new MemoryMember(this, name);
  }

  find(key: string): SharedBudget | undefined {
    return this.#budgets.get(key);
  }

  open(key: string): SharedBudget {
    const known = this.#budgets.get(key);
    if (known !== undefined) return known;
    const budget = new SharedBudget();
    this.#budgets.set(key, budget);
    return budget;
  }

  /** How many budgets are remembered. */
  get size(): number {
    return this.#budgets.size;
  }

  /** Members that were heard of within a lease. */
  membersSeen(): number {
    const sinceUs = this.#time.machineUs() - this.#leaseUs;
    for (const [name, seenUs] of this.#seenUs) if (seenUs <= sinceUs) this.#seenUs.delete(name);
    return this.#seenUs.size;
  }

  exchange(
    process: string,
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
  ): readonly LeaseReply[] {
    const context = { process, nowUs: this.#time.machineUs(), leaseUs: this.#leaseUs };
    this.#seenUs.set(process, context.nowUs);
    settleAll(this, settlements, context);
    const replies = leaseAll(this, requests, context);
    this.#evictSpent(context.nowUs);
    return replies;
  }

  get records(): MemoryRecords {
    return this.#records;
  }

  get nowUs(): number {
    return this.#time.machineUs();
  }

  /** A member that has said goodbye is no longer counted. What it had out stays until its lease is over. */
  leave(process: string): void {
    this.#seenUs.delete(process);
  }

  #evictSpent(nowUs: number): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept += 1) {
      const { done, value } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#budgets.entries();
        return;
      }
      const [key, budget] = value;
      if (budget.isExpired(nowUs)) this.#budgets.delete(key);
    }
  }
}

class MemoryRecords implements RecordTable {
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
    for (const [name, kept] of this.#records) {
      if (name.startsWith(prefix) && found.length < LISTED_MAX) found.push({ name, ...kept });
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

class MemoryMember implements Store {
  readonly processId: string;
  readonly #store: MemoryStore;
  #isClosed = false;

  constructor(store: MemoryStore, processId: string) {
    this.#store = store;
    this.processId = processId;
  }

  get processes(): number {
    return Math.max(1, this.#store.membersSeen());
  }

  async exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
  ): Promise<readonly LeaseReply[]> {
    this.#checkOpen();
    return this.#store.exchange(this.processId, settlements, requests);
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
    if (this.#isClosed) throw new StoreError("the store is closed");
  }
}
