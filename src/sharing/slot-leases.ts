import { leaseSlots, type SharedSlots, slotsExpiryUs } from "../core/limits/shared-slots.ts";
import type { StoreError } from "../errors.ts";
import type { Budget, RoleBudget } from "../limiter/budget.ts";
import { LEASE_MS, type Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";

/** Nobody hears of a slot that others give back: whoever wants one asks again after this. */
const RETRY_US = 100_000;
/** Who has a slot and waits for something else keeps it so long. */
const IDLE_MS = 250;

export interface SlotLeasesCallbacks {
  /** There may be a slot for this lane now. */
  readonly news: (roleBudget: RoleBudget) => void;
  readonly isWaitedFor: (roleBudget: RoleBudget) => boolean;
  readonly failed: (error: StoreError) => void;
  /** While the store is away each process has its share of the slots. */
  readonly isAway: () => boolean;
}

interface SlotLease {
  /** Slots that are this process's for now; those in flight are among them. */
  leased: number;
  /** There is something to tell the store. */
  isDue: boolean;
  wanted: number;
  isRequesting: boolean;
  notBeforeUs: number;
  /** When those of no use yet go back. */
  idle: Timer | undefined;
  readonly waiting: Set<RoleBudget>;
}

/**
 * Slots of budgets whose `max_concurrent` counts over all processes. One is had from the store before a request goes,
 * and goes back when it has ended, so that whoever has waited longest gets it, wherever he is.
 */
export class SlotLeases {
  readonly #store: Store;
  readonly #time: Time;
  readonly #callbacks: SlotLeasesCallbacks;
  readonly #leases = new Map<Budget, SlotLease>();
  #renewal: Timer | undefined;

  constructor(store: Store, time: Time, callbacks: SlotLeasesCallbacks) {
    this.#store = store;
    this.#time = time;
    this.#callbacks = callbacks;
  }

  /** Whether there is a slot of this process's own on the whole way. Asks nobody. */
  has(roleBudget: RoleBudget): boolean {
    return this.#missing(roleBudget) === undefined;
  }

  /** The same for somebody whose turn it is; what is missing is asked for, for `wanted` requests. */
  ensure(roleBudget: RoleBudget, wanted: number): boolean {
    const missing = this.#missing(roleBudget);
    if (missing === undefined) return true;
    const lease = this.#leaseOf(missing);
    lease.waiting.add(roleBudget);
    const freeSlots = missing.policy.maxConcurrent - lease.leased;
    lease.wanted = Math.max(lease.wanted, Math.min(wanted, freeSlots));
    this.#scheduleExchange(missing, lease);
    return false;
  }

  /** A request has ended. Its slots go back; whoever is next here asks like everybody else. */
  freed(roleBudget: RoleBudget): void {
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      const lease = this.#leases.get(at);
      if (lease !== undefined && lease.leased > at.inFlight) this.#giveBack(at, lease);
    }
  }

  isRequesting(roleBudget: RoleBudget): boolean {
    for (let at: Budget | undefined = roleBudget; at; at = at.above)
      if (this.#leases.get(at)?.isRequesting) return true;
    return false;
  }

  /** Gives back what is left. */
  async close(): Promise<void> {
    this.#renewal?.cancel();
    const leases = [...this.#leases];
    this.#leases.clear();
    for (const [, { idle }] of leases) idle?.cancel();
    // A store that is away will find out by itself, when the lease is over.
    await Promise.all(leases.map(([budget]) => this.#update(budget, 0, 0).catch(() => 0)));
  }

  #missing(roleBudget: RoleBudget): Budget | undefined {
    if (this.#callbacks.isAway()) return undefined;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      if (at.policy.sharesSlots && (this.#leases.get(at)?.leased ?? 0) <= at.inFlight) return at;
    }
    return undefined;
  }

  #giveBack(budget: Budget, lease: SlotLease): void {
    lease.idle?.cancel();
    lease.idle = undefined;
    lease.leased = budget.inFlight;
    lease.isDue = true;
    this.#scheduleExchange(budget, lease);
  }

  #scheduleExchange(budget: Budget, lease: SlotLease): void {
    const isTooEarly = !lease.isDue && lease.notBeforeUs > this.#time.monotonicUs();
    if (lease.isRequesting || isTooEarly) return;
    lease.isRequesting = true;
    // With everything else that comes up in this turn.
    queueMicrotask(() => void this.#exchange(budget, lease));
  }

  async #exchange(budget: Budget, lease: SlotLease): Promise<void> {
    const { wanted } = lease;
    lease.isDue = false;
    lease.wanted = 0;
    // What went while the store was away counts like the rest.
    lease.leased = Math.max(lease.leased, budget.inFlight);
    try {
      const given = await this.#update(budget, lease.leased, wanted);
      lease.leased += given;
      if (given < wanted) this.#retryLater(lease);
    } catch (error) {
      // What was to go back does so when the lease is over.
      this.#callbacks.failed(error as StoreError);
    }
    lease.isRequesting = false;
    const roleBudgets = this.#notify(lease);
    if (lease.isDue) this.#scheduleExchange(budget, lease);
    else if (lease.leased > budget.inFlight) this.#keepOrGiveBack(budget, lease, roleBudgets);
    else if (lease.leased === 0 && lease.waiting.size === 0) this.#leases.delete(budget);
    if (lease.leased > 0) this.#renewal ??= this.#renewLater();
  }

  /** A slot that was given to somebody who waits for something else now is kept for a moment; one that nobody wants is not. */
  #keepOrGiveBack(budget: Budget, lease: SlotLease, roleBudgets: readonly RoleBudget[]): void {
    if (!roleBudgets.some(roleBudget => this.#callbacks.isWaitedFor(roleBudget))) this.#giveBack(budget, lease);
    else lease.idle ??= this.#time.setTimer(IDLE_MS, () => this.#giveBack(budget, lease));
  }

  #notify(lease: SlotLease): readonly RoleBudget[] {
    const roleBudgets = [...lease.waiting];
    lease.waiting.clear();
    for (const roleBudget of roleBudgets) this.#callbacks.news(roleBudget);
    return roleBudgets;
  }

  #retryLater(lease: SlotLease): void {
    lease.notBeforeUs = this.#time.monotonicUs() + RETRY_US;
    this.#time.setTimer(RETRY_US / 1000, () => this.#notify(lease));
  }

  #update(budget: Budget, holds: number, wanted: number): Promise<number> {
    const { processId } = this.#store;
    const limit = budget.policy.maxConcurrent;
    return this.#store.change<SharedSlots, number>(`slots ${nameOf(budget)}`, ({ record = {}, nowUs }) => {
      const { slots, given } = leaseSlots(record, processId, { holds, wanted, limit }, nowUs, LEASE_MS * 1000);
      return { record: { next: slots, keepUntilUs: slotsExpiryUs(slots, nowUs) + 1000 }, result: given };
    });
  }

  /** Says in time that this process lives and still has what it has. */
  #renewLater(): Timer {
    return this.#time.setTimer(LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const [budget, lease] of this.#leases) {
        if (lease.leased === 0) continue;
        this.#renewal ??= this.#renewLater();
        lease.isDue = true;
        this.#scheduleExchange(budget, lease);
      }
    });
  }

  #leaseOf(budget: Budget): SlotLease {
    const known = this.#leases.get(budget);
    if (known !== undefined) return known;
    const lease: SlotLease = {
      leased: 0,
      isDue: false,
      wanted: 0,
      isRequesting: false,
      notBeforeUs: 0,
      idle: undefined,
      waiting: new Set(),
    };
    this.#leases.set(budget, lease);
    return lease;
  }
}

function nameOf(budget: Budget): string {
  return "role" in budget ? `lane ${budget.name} ${budget.role}` : `total ${budget.name}`;
}
