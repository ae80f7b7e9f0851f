import { SharedBudget } from "../../core/limits/shared-budget.ts";
import type { Time } from "../../time/time.ts";
import { type Budgets, leaseAll, reportAll, settleAll } from "../exchange.ts";
import {
  LEASE_MS,
  type LeaseReply,
  type LeaseRequest,
  type Settlement,
  type Store,
  type StoreSignals,
  type UseReport,
} from "../store.ts";
import { MapSweeper } from "./map-sweeper.ts";
import { MemoryMember } from "./memory-member.ts";
import { MemoryRecords } from "./memory-records.ts";
import { MemorySignals } from "./memory-signals.ts";

export interface MemoryStoreOptions {
  /** How long a silent member keeps its leased units, in milliseconds. @default LEASE_MS */
  readonly leaseMs?: number;
}

/** A store for several hubs of one process. Each hub is a separate member. */
export class MemoryStore implements Budgets {
  readonly records = new MemoryRecords();
  readonly signals: StoreSignals = new MemorySignals();
  readonly #time: Time;
  readonly #leaseUs: number;
  readonly #budgets = new Map<string, SharedBudget>();
  readonly #seenUs = new Map<string, number>();
  readonly #sweeper = new MapSweeper(this.#budgets, (budget, nowUs) => budget.isExpired(nowUs));

  constructor(time: Time, { leaseMs = LEASE_MS }: MemoryStoreOptions = {}) {
    this.#time = time;
    this.#leaseUs = leaseMs * 1000;
  }

  /** The store as one member uses it. Each member needs a unique name. */
  member(name: string): Store {
    return new MemoryMember(this, name);
  }

  find(key: string): SharedBudget | undefined {
    return this.#budgets.get(key);
  }

  open(key: string): SharedBudget {
    const existing = this.#budgets.get(key);
    if (existing !== undefined) return existing;
    const budget = new SharedBudget();
    this.#budgets.set(key, budget);
    return budget;
  }

  /** The number of budgets in memory. */
  get size(): number {
    return this.#budgets.size;
  }

  get nowUs(): number {
    return this.#time.machineUs();
  }

  /** How many members have made an exchange within a lease. */
  membersSeen(): number {
    const sinceUs = this.nowUs - this.#leaseUs;
    for (const [name, seenUs] of this.#seenUs) if (seenUs <= sinceUs) this.#seenUs.delete(name);
    return this.#seenUs.size;
  }

  exchange(
    process: string,
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): readonly LeaseReply[] {
    const context = { process, nowUs: this.nowUs, leaseUs: this.#leaseUs, dead };
    this.#seenUs.set(process, context.nowUs);
    settleAll(this, settlements, context);
    reportAll(this, reports, context);
    const replies = leaseAll(this, requests, context);
    this.#sweeper.sweep(context.nowUs);
    return replies;
  }

  /** Stops counting a member. Its leased units stay leased until its lease ends. */
  leave(process: string): void {
    this.#seenUs.delete(process);
  }
}
