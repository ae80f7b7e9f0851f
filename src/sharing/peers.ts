import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { StoreError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { WaitQueue } from "../limiter/wait-queue.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { RecordFreshness } from "./record-freshness.ts";
import { SlotLeases } from "./slot-leases.ts";
import { UnitLeases } from "./unit-leases.ts";

export interface PeersOptions {
  readonly store: Store | undefined;
  readonly breakerStore: Store | undefined;
  readonly breakers: BreakerRegistry | undefined;
  readonly time: Time;
  readonly random: () => number;
}

export interface PeersCallbacks {
  /** Waiting requests of this role budget may be ready: they are to be tried again. */
  readonly onReady: (roleBudget: RoleBudget) => void;
  /** The store is away: from now on each process uses its share of the limits. Undefined when it is back. */
  readonly onLimitStoreChange: (away: StoreAway | undefined) => void;
  /** The same for a store that shares breakers only. */
  readonly onBreakerStoreChange: (away: StoreAway | undefined) => void;
  /** Another process has stricter limits for this role budget, which apply to all. */
  readonly onOverruled: (roleBudget: RoleBudget) => void;
  /** The circuits and cooldowns that requests wait for. */
  readonly blockers: () => Iterable<Denial["blocker"]>;
}

export interface StoreAway {
  readonly processes: number;
  readonly error: StoreError;
}

/**
 * What a request needs from the processes that share a store: leased units, leased slots, and fresh breaker records.
 */
export class Peers {
  readonly #unitLeases: UnitLeases | undefined;
  readonly #slotLeases: SlotLeases | undefined;
  readonly #freshness: RecordFreshness | undefined;
  /** Number of requests to the store that were started for each role budget. */
  readonly #requestCount = new WeakMap<RoleBudget, number>();

  constructor({ store, breakerStore, breakers, time, random }: PeersOptions, callbacks: PeersCallbacks) {
    if (store !== undefined) {
      const unitLeases = new UnitLeases(store, time, random, {
        onReady: roleBudget => {
          callbacks.onReady(roleBudget);
          unitLeases.returnUnwanted(roleBudget);
        },
        onStoreChange: callbacks.onLimitStoreChange,
        onOverruled: callbacks.onOverruled,
      });
      this.#unitLeases = unitLeases;
      this.#slotLeases = new SlotLeases(store, time, {
        onReady: callbacks.onReady,
        onStoreError: error => unitLeases.failed(error),
        isStoreAway: () => unitLeases.isAway,
      });
    }
    if (breakerStore !== undefined && breakers !== undefined) {
      this.#freshness = new RecordFreshness(breakerStore, breakers, time, {
        onReady: callbacks.onReady,
        onStoreChange: error => {
          // If limits are shared too, UnitLeases reports the outage and notices by itself when the store is back.
          if (this.#unitLeases === undefined) callbacks.onBreakerStoreChange(error && { processes: 1, error });
          else if (error !== undefined) this.#unitLeases.failed(error);
        },
        blockers: callbacks.blockers,
      });
    }
  }

  /** Whether leases and breaker records allow the request now. Does not ask the store. */
  isReady(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.hasLeases(roleBudget, units, nowUs) && (this.#freshness?.isFresh(call) ?? true);
  }

  /** Whether units and slots are leased for the request. Does not ask the store. */
  hasLeases(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#unitLeases?.has(roleBudget, units, nowUs) !== false && this.#slotLeases?.has(roleBudget) !== false;
  }

  /** As `isReady`, for a request that has the turn. If false, the store is being asked, and `onReady` follows. */
  ensureReady(waiter: Waiter, queue: WaitQueue, nowUs: number): boolean {
    const { roleBudget, units, call } = waiter;
    const wasRequesting = this.isRequesting(waiter);
    // Record and slots are requested together, in one exchange. Units are not leased while a slot is missing.
    const isFresh = this.#freshness?.ensureFresh(call, roleBudget) ?? true;
    const hasSlot = this.#slotLeases?.ensure(roleBudget, queue.length) ?? true;
    const isReady = hasSlot && (this.#unitLeases?.ensure(roleBudget, units, queue.units, nowUs) ?? true) && isFresh;
    if (!wasRequesting && this.isRequesting(waiter))
      this.#requestCount.set(roleBudget, this.requestCount(roleBudget) + 1);
    return isReady;
  }

  /** Number of requests to the store that were started for this role budget. */
  requestCount(roleBudget: RoleBudget): number {
    return this.#requestCount.get(roleBudget) ?? 0;
  }

  isRequesting({ roleBudget }: Waiter): boolean {
    return (
      roleBudget.unitLease?.isRequesting === true ||
      this.#slotLeases?.isRequesting(roleBudget) === true ||
      this.#freshness?.isRefreshing(roleBudget) === true
    );
  }

  /**
   * The read that must end before the request is refused, or granted in shadow mode; undefined if the records are
   * fresh.
   */
  refreshBefore(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return this.#freshness?.refreshBefore(call, denial);
  }

  /** Called for each new request: tries a store that is away again, if its retry time has come. */
  retryStore(nowUs: number): void {
    this.#unitLeases?.retryStore(nowUs);
  }

  /** Called when a request starts to wait for a circuit or cooldown: its record is then re-read regularly. */
  pollBlockers(): void {
    this.#freshness?.pollBlockers();
  }

  charged(roleBudget: RoleBudget, units: number): void {
    if (units > 0) this.#unitLeases?.charged(roleBudget, units);
  }

  written(roleBudget: RoleBudget, units: number): void {
    this.#unitLeases?.written(roleBudget, units);
  }

  returned(roleBudget: RoleBudget, units: number): void {
    this.#unitLeases?.returned(roleBudget, units);
  }

  slotsFreed(roleBudget: RoleBudget): void {
    this.#slotLeases?.freed(roleBudget);
  }

  /** Resolves when pending records are written and all leases are returned. */
  async close(): Promise<void> {
    await this.#freshness?.close();
    await this.#slotLeases?.close();
    await this.#unitLeases?.close();
  }
}
