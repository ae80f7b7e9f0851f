import { backoffMs } from "../core/breaker/backoff.ts";
import type { StoreError } from "../errors.ts";
import type { Budget } from "../limiter/budget.ts";
import { type RoleBudget, UnitLease } from "../limiter/role-budget.ts";
import { type BudgetStore, LEASE_MS, type LeaseReply, type Settlement, type StoreClaim } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import type { PeerChange } from "./peer-change.ts";

/** Leased units are used within this time or returned, so that a process that was suspended sends none of them late. */
const USE_WITHIN_US = 1_000_000;
/** Bounds one lease: units that this process cannot send at once would be missing in the other processes. */
const MAX_UNITS_PER_LEASE = 64;
const RETRY = { baseMs: 1000, capMs: 30_000 };

/**
 * Leases units from the shared store. Everything that has accumulated since the last call goes in one exchange, and
 * only one exchange is in flight. While the store is away nothing is leased and the limits are divided by the number of
 * processes (law S4). It is tried again at growing intervals, when there is traffic. After each exchange it calls `wake`, and `takeChanges` says what has changed.
 */
export class UnitLeases {
  readonly #store: BudgetStore;
  readonly #time: Time;
  readonly #random: () => number;
  readonly #wake: () => void;
  readonly #changes: PeerChange[] = [];
  readonly #wanted = new Map<RoleBudget, { readonly least: number; readonly most: number }>();
  readonly #settlements = new Map<string, { keys: readonly string[]; written: number; returned: number }>();
  /** Role budgets with leased units. */
  readonly #leased = new Set<RoleBudget>();
  #isExchanging = false;
  #isScheduled = false;
  #isAway = false;
  #failures = 0;
  #retryUs = 0;
  #renewal: Timer | undefined;

  constructor(store: BudgetStore, time: Time, random: () => number, wake: () => void) {
    this.#store = store;
    this.#time = time;
    this.#random = random;
    this.#wake = wake;
  }

  /** Whether enough units are leased to send `units` now. Does not ask the store. */
  has(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    if (units === 0 || this.#isAway || !roleBudget.isLimited) return true;
    const { unitLease } = roleBudget;
    return unitLease !== undefined && unitLease.unusedUnits >= units && nowUs - unitLease.leasedUs < USE_WITHIN_US;
  }

  /**
   * As `has`, for a request that has the turn. Missing units are requested, up to `wanted` for the requests behind it.
   */
  ensure(roleBudget: RoleBudget, units: number, wanted: number, nowUs: number): boolean {
    this.retryStore(nowUs);
    if (this.has(roleBudget, units, nowUs)) return true;
    const unitLease = this.#leaseOf(roleBudget);
    this.#returnUnused(roleBudget, unitLease);
    if (unitLease.isRequesting || unitLease.notBeforeUs > nowUs) return false;
    unitLease.isRequesting = true;
    this.#wanted.set(roleBudget, { least: units, most: Math.max(units, Math.min(wanted, MAX_UNITS_PER_LEASE)) });
    this.#scheduleExchange();
    return false;
  }

  charged(roleBudget: RoleBudget, units: number): void {
    const { unitLease } = roleBudget;
    if (unitLease !== undefined) unitLease.unusedUnits = Math.max(0, unitLease.unusedUnits - units);
  }

  written(roleBudget: RoleBudget, units: number): void {
    this.#settle(roleBudget, units, 0);
  }

  returned(roleBudget: RoleBudget, units: number): void {
    this.#settle(roleBudget, 0, units);
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** The store has failed in another part of the program. */
  failed(error: StoreError): void {
    this.#storeLost(error, [], []);
  }

  takeChanges(): readonly PeerChange[] {
    return this.#changes.splice(0);
  }

  /** Called for each new request: tries a store that is away again, if its retry time has come. */
  retryStore(nowUs: number): void {
    if (this.#isAway && nowUs >= this.#retryUs) this.#scheduleExchange();
  }

  /** Returns all units and closes the store. */
  async close(): Promise<void> {
    this.#renewal?.cancel();
    for (const roleBudget of this.#leased) this.#settle(roleBudget, 0, roleBudget.unitLease?.leasedUnits ?? 0);
    const last = [...this.#settlements.values()];
    this.#settlements.clear();
    // If the store is away, the units return when the lease expires.
    if (last.length > 0 && !this.#isAway) await this.#store.exchange(last, []).catch(() => undefined);
    await this.#store.close();
  }

  #leaseOf(roleBudget: RoleBudget): UnitLease {
    roleBudget.unitLease ??= new UnitLease();
    return roleBudget.unitLease;
  }

  #returnUnused(roleBudget: RoleBudget, unitLease: UnitLease): void {
    if (unitLease.unusedUnits === 0) return;
    const { unusedUnits } = unitLease;
    unitLease.unusedUnits = 0;
    this.#settle(roleBudget, 0, unusedUnits);
  }

  #settle(roleBudget: RoleBudget, written: number, returned: number): void {
    const { unitLease } = roleBudget;
    if (unitLease === undefined || unitLease.leasedUnits === 0) return;
    // Units that were granted while the store was away were never leased.
    const writtenUnits = Math.min(written, unitLease.leasedUnits);
    const returnedUnits = Math.min(returned, unitLease.leasedUnits - writtenUnits);
    if (writtenUnits + returnedUnits === 0) return;
    unitLease.leasedUnits -= writtenUnits + returnedUnits;
    if (unitLease.leasedUnits === 0) this.#leased.delete(roleBudget);
    this.#addSettlement(unitLease.keys, writtenUnits, returnedUnits);
    this.#scheduleExchange();
  }

  #addSettlement(keys: readonly string[], written: number, returned: number): void {
    const name = keys.join("\n");
    const sum = this.#settlements.get(name) ?? { keys, written: 0, returned: 0 };
    sum.written += written;
    sum.returned += returned;
    this.#settlements.set(name, sum);
  }

  /** In a microtask, so that everything of the present turn of the event loop goes in one exchange. */
  #scheduleExchange(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      void this.#exchange();
    });
  }

  async #exchange(): Promise<void> {
    if (this.#isExchanging || (this.#isAway && this.#time.monotonicUs() < this.#retryUs)) return;
    const settlements: readonly Settlement[] = [...this.#settlements.values()];
    const wanted = [...this.#wanted];
    if (settlements.length + wanted.length === 0 && !this.#isAway) return;
    this.#settlements.clear();
    this.#wanted.clear();
    this.#isExchanging = true;
    const roleBudgets = wanted.map(([roleBudget]) => roleBudget);
    try {
      const replies = await this.#store.exchange(
        settlements,
        wanted.map(([roleBudget, { least, most }]) => ({ claims: claimsOf(roleBudget), least, most })),
      );
      this.#isExchanging = false;
      this.#storeRestored();
      for (const [index, roleBudget] of roleBudgets.entries()) this.#applyReply(roleBudget, replies[index]);
    } catch (error) {
      this.#isExchanging = false;
      this.#storeLost(error as StoreError, settlements, roleBudgets);
    }
    if (this.#changes.length > 0) this.#wake();
    // No request uses what is left over now: the other processes may.
    for (const roleBudget of roleBudgets)
      if (roleBudget.waiting === 0) this.#returnUnused(roleBudget, this.#leaseOf(roleBudget));
    if (this.#settlements.size + this.#wanted.size > 0) this.#scheduleExchange();
  }

  #applyReply(roleBudget: RoleBudget, reply: LeaseReply | undefined): void {
    const unitLease = this.#leaseOf(roleBudget);
    const nowUs = this.#time.monotonicUs();
    unitLease.isRequesting = false;
    if (reply?.kind === "granted") {
      unitLease.keys = claimsOf(roleBudget).map(({ key }) => key);
      unitLease.unusedUnits += reply.units;
      unitLease.leasedUnits += reply.units;
      unitLease.leasedUs = nowUs;
      this.#leased.add(roleBudget);
      this.#renewal ??= this.#renewLater();
    } else if (reply !== undefined) {
      unitLease.notBeforeUs = nowUs + Math.ceil(reply.waitMs * 1000);
    }
    if (reply?.isStricter && !unitLease.isOverruled) {
      unitLease.isOverruled = true;
      this.#changes.push({ kind: "overruled", roleBudget });
    }
    this.#changes.push({ kind: "ready", roleBudget });
  }

  #storeLost(error: StoreError, settlements: readonly Settlement[], roleBudgets: readonly RoleBudget[]): void {
    this.#failures += 1;
    this.#retryUs =
      this.#time.monotonicUs() + 1000 * Math.max(100, backoffMs(RETRY, this.#failures, this.#random(), undefined));
    for (const { keys, written, returned } of settlements) this.#addSettlement(keys, written, returned);
    const isFirstFailure = !this.#isAway;
    this.#isAway = true;
    const away = { processes: Math.max(1, this.#store.processes), error };
    if (isFirstFailure) this.#changes.push({ kind: "store", shares: "limits", away });
    // Requests that accumulated during the exchange are dropped too, so that no waiting request depends on a reply that
    // will not come.
    const requesting = new Set([...roleBudgets, ...this.#wanted.keys()]);
    this.#wanted.clear();
    for (const roleBudget of requesting) {
      this.#leaseOf(roleBudget).isRequesting = false;
      this.#changes.push({ kind: "ready", roleBudget });
    }
  }

  #storeRestored(): void {
    this.#failures = 0;
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#changes.push({ kind: "store", shares: "limits", away: undefined });
  }

  /** Renews the leases of this process well before they expire, and returns unused units. */
  #renewLater(): Timer {
    return this.#time.setTimer(LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const roleBudget of this.#leased) {
        const { unitLease } = roleBudget;
        if (unitLease === undefined) continue;
        this.#returnUnused(roleBudget, unitLease);
        // A settlement of nothing renews the lease.
        if (unitLease.leasedUnits > 0) this.#addSettlement(unitLease.keys, 0, 0);
      }
      if (this.#leased.size > 0) this.#renewal = this.#renewLater();
      this.#scheduleExchange();
    });
  }
}

/** Store keys and limits of the budgets that apply. Budgets without windows are not shared. */
function claimsOf(roleBudget: RoleBudget): readonly StoreClaim[] {
  const claims: StoreClaim[] = [];
  for (let at: Budget | undefined = roleBudget; at; at = at.above) {
    const { storeKey: key, windows, policy, spacingUs } = at;
    if (windows.length === 0) continue;
    const claimed = windows.map(({ limit, spanUs }, index) => ({
      limit,
      spanUs,
      windowUs: policy.rates[index]?.windowUs ?? spanUs,
    }));
    claims.push({ key, windows: claimed, spacingUs });
  }
  return claims;
}
