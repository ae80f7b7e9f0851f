import { SharedBudget } from "../core/shared-budget.ts";
import { StoreError } from "../errors.ts";
import type { Time } from "../time/time.ts";
import { answerAll, type Budgets, settleAll } from "./exchange.ts";
import { type Answer, type Ask, type BudgetStore, LEASE_MS, type Settlement } from "./store.ts";

export interface MemoryStoreOptions {
  /** How long a member that is not heard of keeps what it has out. @default LEASE_MS */
  readonly leaseMs?: number;
}

/** With each exchange so many budgets are looked at, whether they may be forgotten. */
const SWEPT_AT_ONCE = 2;

/** Budgets that several hubs of one process share; each is a member of its own. */
export class MemoryStore implements Budgets {
  readonly #time: Time;
  readonly #leaseUs: number;
  readonly #budgets = new Map<string, SharedBudget>();
  readonly #seenUs = new Map<string, number>();
  #sweep = this.#budgets.entries();

  constructor(time: Time, { leaseMs = LEASE_MS }: MemoryStoreOptions = {}) {
    this.#time = time;
    this.#leaseUs = leaseMs * 1000;
  }

  /** The store as one member sees it. Members are told apart by their names. */
  member(name: string): BudgetStore {
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

  exchange(process: string, settlements: readonly Settlement[], asks: readonly Ask[]): readonly Answer[] {
    const contact = { process, nowUs: this.#time.machineUs(), leaseUs: this.#leaseUs };
    this.#seenUs.set(process, contact.nowUs);
    settleAll(this, settlements, contact);
    const answers = answerAll(this, asks, contact);
    this.#forgetSpent(contact.nowUs);
    return answers;
  }

  /** A member that has said goodbye is no longer counted. What it had out stays until its lease is over. */
  leave(process: string): void {
    this.#seenUs.delete(process);
  }

  #forgetSpent(nowUs: number): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept += 1) {
      const { done, value } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#budgets.entries();
        return;
      }
      const [key, budget] = value;
      if (budget.isSpent(nowUs)) this.#budgets.delete(key);
    }
  }
}

class MemoryMember implements BudgetStore {
  readonly #store: MemoryStore;
  readonly #name: string;
  #isClosed = false;

  constructor(store: MemoryStore, name: string) {
    this.#store = store;
    this.#name = name;
  }

  get processes(): number {
    return Math.max(1, this.#store.membersSeen());
  }

  async exchange(settlements: readonly Settlement[], asks: readonly Ask[]): Promise<readonly Answer[]> {
    if (this.#isClosed) throw new StoreError("the store is closed");
    return this.#store.exchange(this.#name, settlements, asks);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#store.leave(this.#name);
  }
}
