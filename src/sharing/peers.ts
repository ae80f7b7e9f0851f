import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { StoreError } from "../errors.ts";
import type { RoleBudget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Waiter, WaitQueue } from "../limiter/wait-queue.ts";
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
  /** There is word for those who wait in this lane: they are to be tried again. */
  readonly heard: (roleBudget: RoleBudget) => void;
  readonly isWaitedFor: (roleBudget: RoleBudget) => boolean;
  /** The store is away: from now on each process keeps to its share. Undefined when it is back. */
  readonly limitsChanged: (away: StoreAway | undefined) => void;
  /** The same where breakers alone are shared. */
  readonly breakersChanged: (away: StoreAway | undefined) => void;
  /** Another process has stricter limits in mind for this lane, and they count. */
  readonly overruled: (roleBudget: RoleBudget) => void;
  /** Whom somebody waits for, cut off. */
  readonly blockers: () => Iterable<Denial["blocker"]>;
}

export interface StoreAway {
  readonly processes: number;
  readonly error: StoreError;
}

/** Everything that a request needs from those who share a store: units, slots, and news about its host. */
export class Peers {
  readonly #unitLeases: UnitLeases | undefined;
  readonly #slotLeases: SlotLeases | undefined;
  readonly #freshness: RecordFreshness | undefined;
  /** How often each lane has begun to ask for something. */
  readonly #requestCount = new WeakMap<RoleBudget, number>();

  constructor({ store, breakerStore, breakers, time, random }: PeersOptions, callbacks: PeersCallbacks) {
    if (store !== undefined) {
      const unitLeases = new UnitLeases(store, time, random, {
        news: roleBudget => {
          callbacks.heard(roleBudget);
          unitLeases.returnUnwanted(roleBudget, callbacks.isWaitedFor(roleBudget));
        },
        changed: callbacks.limitsChanged,
        overruled: callbacks.overruled,
      });
      this.#unitLeases = unitLeases;
      this.#slotLeases = new SlotLeases(store, time, {
        news: callbacks.heard,
        isWaitedFor: callbacks.isWaitedFor,
        failed: error => unitLeases.failed(error),
        isAway: () => unitLeases.isAway,
      });
    }
    if (breakerStore !== undefined && breakers !== undefined) {
      this.#freshness = new RecordFreshness(breakerStore, breakers, time, {
        heard: callbacks.heard,
        changed: error => {
          // Where limits are shared, too, that they are no longer is what there is to tell, and it comes back by itself.
          if (this.#unitLeases === undefined) callbacks.breakersChanged(error && { processes: 1, error });
          else if (error !== undefined) this.#unitLeases.failed(error);
        },
        blockers: callbacks.blockers,
      });
    }
  }

  /** Whether they have nothing against it. Asks nobody. */
  isReady(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.hasLeases(roleBudget, units, nowUs) && (this.#freshness?.isFresh(call) ?? true);
  }

  /** Whether there are units and slots for it. Asks nobody. */
  hasLeases(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#unitLeases?.has(roleBudget, units, nowUs) !== false && this.#slotLeases?.has(roleBudget) !== false;
  }

  /** The same for somebody whose turn it is. False means that they are being asked: the ears hear when it is known. */
  ensureReady(waiter: Waiter, queue: WaitQueue, nowUs: number): boolean {
    const { roleBudget, units, call } = waiter;
    const wasRequesting = this.isRequesting(waiter);
    // All at once, so that the store is asked together. But nobody keeps units while he lacks a slot.
    const isFresh = this.#freshness?.ensureFresh(call, roleBudget) ?? true;
    const hasSlot = this.#slotLeases?.ensure(roleBudget, queue.length) ?? true;
    const isPeerReady = hasSlot && (this.#unitLeases?.ensure(roleBudget, units, queue.units, nowUs) ?? true) && isFresh;
    if (!wasRequesting && this.isRequesting(waiter))
      this.#requestCount.set(roleBudget, this.requestCount(roleBudget) + 1);
    return isPeerReady;
  }

  /** How many times this lane has begun to ask. */
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

  /** What there is to hear before somebody may be told no, or goes without asking; undefined when there is nothing. */
  refreshBefore(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return this.#freshness?.refreshBefore(call, denial);
  }

  /** Somebody has come: a reason to look whether a store that was away is back. */
  retryStore(nowUs: number): void {
    this.#unitLeases?.retryStore(nowUs);
  }

  /** Somebody waits for a host that is cut off. */
  pollBlockers(): void {
    this.#freshness?.pollBlockers();
  }

  taken(roleBudget: RoleBudget, units: number): void {
    if (units > 0) this.#unitLeases?.taken(roleBudget, units);
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

  /** When they know what this process knows, and have back what it had. */
  async close(): Promise<void> {
    await this.#freshness?.close();
    await this.#slotLeases?.close();
    await this.#unitLeases?.close();
  }
}
