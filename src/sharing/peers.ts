import type { Blocker, BreakerChange, ProbePermissions } from "../breaker/breaker-change.ts";
import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import type { Constraint } from "../errors.ts";
import { type Budget, budgetsAbove } from "../limiter/budget.ts";
import { type Charge, type Costs, ONE_UNIT } from "../limiter/charge.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { TakenOver } from "../limiter/recount.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { WaitQueue } from "../limiter/wait-queue.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { BreakerRecordName } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import { Suspension } from "../time/suspension.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import { BreakerSync } from "./breaker-sync.ts";
import { CostLeases } from "./cost-leases.ts";
import { DeadProcesses } from "./dead-processes.ts";
import type { PeerChange } from "./peer-change.ts";
import { SlotLeases } from "./slot-leases.ts";
import type { AwayPolicy, StoreAway } from "./store-outage.ts";
import { UnitLeases } from "./unit-leases.ts";

export interface PeersOptions {
  readonly store: Store | undefined;
  readonly breakerStore: Store | undefined;
  readonly breakers: Breakers | undefined;
  readonly time: Time;
  readonly random: () => number;
  readonly awayPolicy: () => AwayPolicy;
  /** The queued request that has the next turn at the budgets that this role budget shares. */
  readonly nextBeside: (roleBudget: RoleBudget) => Waiter | undefined;
}

/**
 * Gets for each request what depends on the processes that share a store: leased units and slots, and fresh breaker
 * records.
 * The gate calls it and takes its changes. It calls the gate only by `wake`, when there are changes to take.
 */
export class Peers {
  readonly #time: Time;
  readonly #suspension: Suspension;
  readonly #dead: DeadProcesses;
  readonly #unitLeases: UnitLeases | undefined;
  readonly #costLeases: CostLeases | undefined;
  readonly #slotLeases: SlotLeases | undefined;
  readonly #breakerSync: BreakerSync | undefined;
  /** The breakers are shared in another store than the limits. */
  readonly #hasOwnBreakerStore: boolean;
  /** The last request of each role budget whose turn it was. */
  readonly #lastCalls = new WeakMap<RoleBudget, EntryRequest>();
  readonly #readTimers = new Map<RoleBudget, Timer>();
  /** Number of requests to the store that were started for each role budget. */
  readonly #requestCount = new WeakMap<RoleBudget, number>();

  constructor({ store, breakerStore, breakers, time, random, awayPolicy, nextBeside }: PeersOptions, wake: () => void) {
    this.#time = time;
    this.#suspension = new Suspension(time);
    const dead = new DeadProcesses(time);
    this.#dead = dead;
    this.#hasOwnBreakerStore = breakerStore !== store;
    if (store !== undefined) {
      const onRequest = (roleBudget: RoleBudget) => {
        this.#countRequest(roleBudget);
        const call = this.#lastCalls.get(roleBudget);
        if (call !== undefined) this.#breakerSync?.refreshAhead(call);
      };
      const unitLeases = new UnitLeases({ store, time, dead, random, awayPolicy, wake, nextBeside, onRequest });
      this.#unitLeases = unitLeases;
      this.#costLeases = new CostLeases(store, time, dead, () => unitLeases.away !== undefined, wake);
      this.#slotLeases = new SlotLeases(store, time, dead, () => unitLeases.reached(), wake);
    }
    if (breakerStore !== undefined && breakers !== undefined)
      this.#breakerSync = new BreakerSync(breakerStore, breakers, time, wake);
  }

  /** The outage of the store of the limits; undefined while the store answers. */
  get away(): StoreAway | undefined {
    return this.#unitLeases?.away;
  }

  takeChanges(): readonly PeerChange[] {
    const changes = [
      ...(this.#costLeases?.takeChanges() ?? []),
      ...(this.#slotLeases?.takeChanges() ?? []),
      ...(this.#breakerSync?.takeChanges() ?? []),
    ];
    if (this.#unitLeases === undefined) return changes;
    for (const roleBudget of this.#costLeases?.takeRefused() ?? []) this.#unitLeases.returnUnused(roleBudget);
    // The unit leases alone decide when the store of the limits is away and when it is back.
    const isOfLimits = (change: PeerChange) =>
      change.kind === "store" && (change.shares === "limits" || !this.#hasOwnBreakerStore);
    for (const change of changes)
      if (change.kind === "store" && isOfLimits(change) && change.away !== undefined)
        this.#unitLeases.failed(change.away.error);
    const unitChanges = this.#unitLeases.takeChanges();
    if (unitChanges.some(change => change.kind === "store" && change.away === undefined)) {
      this.#costLeases?.resume();
      this.#slotLeases?.resume();
      if (!this.#hasOwnBreakerStore) {
        this.#breakerSync?.reached();
        this.#breakerSync?.restoreLost();
      }
    }
    return [...unitChanges, ...changes.filter(change => !isOfLimits(change))];
  }

  /** Whether leases and breaker records allow the request now. Does not ask the store. */
  isReady(call: EntryRequest, roleBudget: RoleBudget, charge: Charge, nowUs: number): boolean {
    return this.hasLeases(roleBudget, charge, nowUs) && (this.#breakerSync?.isFresh(call) ?? true);
  }

  /** Whether units and slots are leased for the request. Does not ask the store. */
  hasLeases(roleBudget: RoleBudget, charge: Charge, nowUs: number): boolean {
    this.#checkSuspension();
    if (roleBudget.exceedsShare(charge)) return false;
    return (
      this.#unitLeases?.has(roleBudget, charge.units, nowUs) !== false &&
      (this.#usesShare || this.#costLeases?.has(roleBudget, charge.costs, nowUs) !== false) &&
      this.#hasSlots(roleBudget)
    );
  }

  /** As `isReady`, for a request whose turn it is. If false, the store is being asked, and its reply is a change. */
  ensureReady(waiter: Waiter, queue: WaitQueue, nowUs: number): boolean {
    const { roleBudget, charge, call } = waiter;
    this.#checkSuspension();
    if (roleBudget.exceedsShare(charge)) {
      // When the store is back, the waiting requests are queued again as soon as the full limits apply.
      if (this.away !== undefined) this.#unitLeases?.awaitStore(roleBudget);
      return false;
    }
    const wasRequesting = this.isRequesting(waiter);
    const requests = this.requestCount(roleBudget);
    if (this.#breakerSync !== undefined) this.#lastCalls.set(roleBudget, call);
    // Record and slots are requested together, in one exchange.
    const isFresh = this.#breakerSync?.ensureFresh(call, roleBudget) ?? true;
    const isReady = this.#ensureLeases(roleBudget, charge, queue.length, queue.units, nowUs) && isFresh;
    // `onRequest` has counted a request for units already, because units are also requested in advance.
    if (!wasRequesting && this.isRequesting(waiter) && this.requestCount(roleBudget) === requests)
      this.#countRequest(roleBudget);
    return isReady;
  }

  /**
   * The budget above the role budget of a request that lacks units of which all that may be free are requested for other
   * requests. The next reply of the store decides.
   */
  requestedOut({ roleBudget, charge }: Waiter, nowUs: number): Budget | undefined {
    return this.#unitLeases?.requestedOut(roleBudget, charge.units, nowUs);
  }

  /** As `hasLeases`, but a store that answers may have what is missing. */
  mayHaveLeases(roleBudget: RoleBudget, charge: Charge, nowUs: number): boolean {
    const isTaken = this.takenSlot(roleBudget, nowUs) !== undefined;
    const canAsk = this.away === undefined && !isTaken && !roleBudget.exceedsShare(charge);
    return canAsk || this.hasLeases(roleBudget, charge, nowUs);
  }

  /** The shared slots that the other processes have, as the store has just said; undefined if that is not known. */
  takenSlot(roleBudget: RoleBudget, nowUs: number): Constraint | undefined {
    return this.#slotLeases?.takenByOthers(roleBudget, nowUs)?.slotConstraint("max_concurrent");
  }

  /** Requests what a call that does not wait has lacked. The next call can use it, within a moment. */
  requestAhead(call: EntryRequest, roleBudget: RoleBudget, charge: Charge, nowUs: number): void {
    this.#breakerSync?.ensureFresh(call, roleBudget);
    if (this.away !== undefined || roleBudget.exceedsShare(charge)) return;
    this.#unitLeases?.keepForNext(roleBudget, nowUs);
    if (!this.hasLeases(roleBudget, charge, nowUs)) this.#ensureLeases(roleBudget, charge, 1, charge.units, nowUs);
  }

  /**
   * The store may have ended every lease while the machine was suspended, or may have lost its data: units that were
   * leased before are returned, as after a change of the limits.
   */
  #checkSuspension(): void {
    if (this.#suspension.wasSuspended()) this.limitsChanged([]);
  }

  /** The limit that delays a request that is not ready: a slot that all processes share, or a store that is away. */
  limitOf({ roleBudget, charge }: Pick<Waiter, "roleBudget" | "charge">): Constraint | undefined {
    const storeConstraint = roleBudget.storeConstraint(charge);
    if (storeConstraint !== undefined) return storeConstraint;
    return this.#hasSlots(roleBudget)
      ? undefined
      : this.#slotLeases?.missing(roleBudget)?.slotConstraint("max_concurrent");
  }

  /** Number of requests to the store that were started for this role budget. */
  requestCount(roleBudget: RoleBudget): number {
    return this.#requestCount.get(roleBudget) ?? 0;
  }

  /**
   * The number of the last request to the store that a new request may need. It leases its shared slots, its units and
   * its costs one after the other.
   */
  lastRequestFor(roleBudget: RoleBudget, { costs }: Charge): number {
    const shared = [roleBudget, ...budgetsAbove(roleBudget)].filter(({ policy }) => policy.sharesSlots);
    return this.requestCount(roleBudget) + shared.length + (costs === undefined ? 1 : 2);
  }

  #countRequest(roleBudget: RoleBudget): void {
    this.#requestCount.set(roleBudget, this.requestCount(roleBudget) + 1);
  }

  isRequesting({ roleBudget }: Waiter): boolean {
    return (
      roleBudget.unitLease?.isRequesting === true ||
      this.#costLeases?.isRequesting(roleBudget) === true ||
      this.#slotLeases?.isRequesting(roleBudget) === true ||
      this.#breakerSync?.isRefreshing(roleBudget) === true
    );
  }

  /**
   * The read that must end before the request is refused, or granted in shadow mode; undefined if the records are
   * fresh.
   */
  refreshBefore(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return this.#breakerSync?.refreshBefore(call, denial);
  }

  /** Reads breaker records and applies them. Resolves to false if the store could not be reached. */
  async refreshRecords(names: readonly BreakerRecordName[]): Promise<boolean> {
    return (await this.#breakerSync?.readAll(names)) ?? true;
  }

  /** Called for each new request: tries a store that is away again, if its retry time has come. */
  retryStore(nowUs: number): void {
    this.#unitLeases?.retryStore(nowUs);
  }

  /** Asked before a half-open circuit is probed; undefined if the breakers are not shared. */
  get probes(): ProbePermissions | undefined {
    return this.#breakerSync;
  }

  /** Called with every change of the breakers: those that this process made itself are written to the store. */
  publish(changes: readonly BreakerChange[]): void {
    this.#breakerSync?.publish(changes);
  }

  /** Called with the circuits and cooldowns that requests wait for: their records are re-read regularly. */
  poll(blockers: Iterable<Blocker>): void {
    this.#breakerSync?.poll(blockers);
  }

  /**
   * The policy has other limits: units that were leased under the former ones are returned, and leased again. Units
   * that budgets have taken over are reported to the store.
   */
  limitsChanged(takenOver: readonly TakenOver[]): void {
    this.#unitLeases?.limitsChanged(takenOver);
    this.#costLeases?.limitsChanged();
  }

  /** Reports to the store the units that these budgets have taken over, because it does not count them there. */
  takenOver(all: readonly TakenOver[]): void {
    if (all.length > 0) this.#unitLeases?.takenOver(all);
  }

  /** An operator has changed the rates of these budgets: as `limitsChanged`, for them alone. */
  ratesOrdered(roleBudgets: readonly RoleBudget[]): void {
    this.#unitLeases?.ratesOrdered(roleBudgets);
  }

  /** These processes of the store have ended: their leases are free earlier than the store has announced. */
  processesEnded(processIds: readonly string[], roleBudgets: Iterable<RoleBudget>): void {
    this.#dead.add(processIds);
    for (const roleBudget of roleBudgets) {
      this.#unitLeases?.askAgain(roleBudget);
      this.#costLeases?.askAgain(roleBudget);
    }
  }

  /** A request of this role budget waits no longer, or only for the end of a denial: it does not use its units now. */
  left(roleBudget: RoleBudget): void {
    this.#unitLeases?.returnUnneeded(roleBudget);
  }

  charged(roleBudget: RoleBudget, { units, costs }: Charge): void {
    if (units > 0) this.#unitLeases?.charged(roleBudget, units);
    this.#readAhead(roleBudget);
    if (costs !== undefined) this.#costLeases?.charged(roleBudget, costs);
  }

  /**
   * Reports the costs that a request has really used, and those that were leased for it. Called once for each grant, and
   * again without leased costs if the request turns out to have used more.
   */
  costsUsed(roleBudget: RoleBudget, leased: Costs, used: Costs): void {
    this.#costLeases?.used(roleBudget, leased, used);
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
    for (const timer of this.#readTimers.values()) timer.cancel();
    await this.#breakerSync?.close();
    await this.#slotLeases?.close();
    await this.#costLeases?.close();
    await this.#unitLeases?.close();
  }

  /** If the store is slow, reads the records one round trip before the windows permit the next request. */
  #readAhead(roleBudget: RoleBudget): void {
    const call = this.#lastCalls.get(roleBudget);
    const aheadUs = this.#breakerSync?.readAheadUs ?? 0;
    if (aheadUs === 0 || call === undefined || roleBudget.waiting === 0 || this.#readTimers.has(roleBudget)) return;
    const nowUs = this.#time.monotonicUs();
    const ms = (roleBudget.earliestUs(ONE_UNIT, nowUs) - nowUs - aheadUs) / 1000;
    if (ms <= 0) return;
    const timer = setUnreferencedTimer(this.#time, ms, () => {
      this.#readTimers.delete(roleBudget);
      if (roleBudget.waiting > 0) this.#breakerSync?.refreshAhead(call);
    });
    this.#readTimers.set(roleBudget, timer);
  }

  /** Units are not leased while a slot is missing, and costs not while units are. */
  #ensureLeases(roleBudget: RoleBudget, charge: Charge, queued: number, queuedUnits: number, nowUs: number): boolean {
    return (
      (this.#hasSlots(roleBudget) || this.#ensureSlots(roleBudget, queued)) &&
      (this.#unitLeases?.ensure(roleBudget, charge.units, queuedUnits, nowUs) ?? true) &&
      this.#ensureCosts(roleBudget, charge, queued, nowUs)
    );
  }

  #ensureCosts(roleBudget: RoleBudget, { costs }: Charge, queued: number, nowUs: number): boolean {
    if (costs === undefined || this.#costLeases === undefined || this.#usesShare) return true;
    // Only the unit leases retry a store that is away.
    if (this.#unitLeases?.away === undefined) return this.#costLeases.ensure(roleBudget, costs, queued, nowUs);
    if (this.#costLeases.has(roleBudget, costs, nowUs)) return true;
    this.#unitLeases.awaitStore(roleBudget);
    return false;
  }

  /** The store is away, and this process uses its share of the limits meanwhile. */
  get #usesShare(): boolean {
    return this.#unitLeases?.away?.mode === "share";
  }

  #ensureSlots(roleBudget: RoleBudget, wanted: number): boolean {
    // Only the unit leases retry a store that is away.
    if (this.#unitLeases?.away === undefined) return this.#slotLeases?.ensure(roleBudget, wanted) === true;
    this.#unitLeases.awaitStore(roleBudget);
    return false;
  }

  /** A process that uses its share of the limits leases no slots: it has its share of them, and reports them later. */
  #hasSlots(roleBudget: RoleBudget): boolean {
    if (this.#slotLeases === undefined) return true;
    if (!this.#usesShare) return this.#slotLeases.has(roleBudget);
    this.#slotLeases.usesWithoutStore(roleBudget);
    return true;
  }
}
