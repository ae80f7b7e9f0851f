import { backoffMs } from "../core/breaker/backoff.ts";
import type { BudgetClaim } from "../core/limits/shared-budget.ts";
import type { StoreError } from "../errors.ts";
import type { Budget, RoleBudget } from "../limiter/budget.ts";
import { UnitLease } from "../limiter/unit-lease.ts";
import {
  type BudgetStore,
  LEASE_MS,
  type LeaseReply,
  type LeaseRequest,
  type Settlement,
  type StoreClaim,
} from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";

/** What is given is used soon or goes back: a process that slept must not come late with what others could have used. */
const USE_WITHIN_US = 1_000_000;
/** No more is asked for at once: what a process cannot send at once it keeps from the others. */
const MAX_UNITS_PER_LEASE = 64;
const RETRY = { baseMs: 1000, capMs: 30_000 };

export interface UnitLeasesCallbacks {
  /** A lane has got something, or knows when it may ask again. */
  readonly news: (roleBudget: RoleBudget) => void;
  /** The store is away: from now on each process keeps to its share. Undefined when it is back. */
  readonly changed: (away: { readonly processes: number; readonly error: StoreError } | undefined) => void;
  /** Another process has stricter limits in mind for this lane, and they count. */
  readonly overruled: (roleBudget: RoleBudget) => void;
}

/**
 * Draws units for this process's lanes from a store that other processes draw on too. All that has come up since the
 * last call goes in one, and only one is under way at a time. While the store is away nothing is drawn, and the limits
 * are divided (law S4); it is asked again now and then, when there is traffic.
 */
export class UnitLeases {
  readonly #store: BudgetStore;
  readonly #time: Time;
  readonly #random: () => number;
  readonly #callbacks: UnitLeasesCallbacks;
  readonly #wanted = new Map<RoleBudget, { readonly least: number; readonly most: number }>();
  readonly #settlements = new Map<string, { keys: readonly string[]; written: number; returned: number }>();
  /** Lanes that have something out. */
  readonly #leased = new Set<RoleBudget>();
  #isExchanging = false;
  #isScheduled = false;
  #isAway = false;
  #failures = 0;
  #retryUs = 0;
  #renewal: Timer | undefined;

  constructor(store: BudgetStore, time: Time, random: () => number, callbacks: UnitLeasesCallbacks) {
    this.#store = store;
    this.#time = time;
    this.#random = random;
    this.#callbacks = callbacks;
  }

  /** Whether a lane may send so many units now, as far as others are concerned. Asks nobody. */
  has(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    if (units === 0 || this.#isAway || !isLimited(roleBudget)) return true;
    const { unitLease } = roleBudget;
    return unitLease !== undefined && unitLease.units >= units && nowUs - unitLease.leasedUs < USE_WITHIN_US;
  }

  /** The same for somebody whose turn it is; what is missing is asked for, and `wanted` units with it. */
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

  taken(roleBudget: RoleBudget, units: number): void {
    const { unitLease } = roleBudget;
    if (unitLease !== undefined) unitLease.units = Math.max(0, unitLease.units - units);
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

  /** The store has failed at something else. */
  failed(error: StoreError): void {
    this.#storeLost(error, [], []);
  }

  /** Somebody has something to send: a reason to look whether a store that was away is back. */
  retryStore(nowUs: number): void {
    if (this.#isAway && nowUs >= this.#retryUs) this.#scheduleExchange();
  }

  /** What nobody in the line wants any more goes back at once. */
  returnUnwanted(roleBudget: RoleBudget, isWaitedFor: boolean): void {
    if (!isWaitedFor && roleBudget.unitLease !== undefined) this.#returnUnused(roleBudget, roleBudget.unitLease);
  }

  /** Gives everything back and says goodbye. */
  async close(): Promise<void> {
    this.#renewal?.cancel();
    for (const roleBudget of this.#leased) this.#settle(roleBudget, 0, roleBudget.unitLease?.leasedUnits ?? 0);
    const last = [...this.#settlements.values()];
    this.#settlements.clear();
    // A store that is away will find out by itself, when the lease is over.
    if (last.length > 0 && !this.#isAway) await this.#store.exchange(last, []).catch(() => undefined);
    await this.#store.close();
  }

  #leaseOf(roleBudget: RoleBudget): UnitLease {
    roleBudget.unitLease ??= new UnitLease();
    return roleBudget.unitLease;
  }

  #returnUnused(roleBudget: RoleBudget, unitLease: UnitLease): void {
    if (unitLease.units === 0) return;
    const { units } = unitLease;
    unitLease.units = 0;
    this.#settle(roleBudget, 0, units);
  }

  #settle(roleBudget: RoleBudget, written: number, returned: number): void {
    const { unitLease } = roleBudget;
    if (unitLease === undefined || unitLease.leasedUnits === 0) return;
    // What was granted while the store was away was never drawn from it.
    const gone = Math.min(written, unitLease.leasedUnits);
    const back = Math.min(returned, unitLease.leasedUnits - gone);
    if (gone + back === 0) return;
    unitLease.leasedUnits -= gone + back;
    if (unitLease.leasedUnits === 0) this.#leased.delete(roleBudget);
    const name = unitLease.keys.join("\n");
    const sum = this.#settlements.get(name) ?? { keys: unitLease.keys, written: 0, returned: 0 };
    sum.written += gone;
    sum.returned += back;
    this.#settlements.set(name, sum);
    this.#scheduleExchange();
  }

  /** With everything else that comes up in this turn. */
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
    const roleBudgets = [...this.#wanted];
    if (settlements.length + roleBudgets.length === 0 && !this.#isAway) return;
    this.#settlements.clear();
    this.#wanted.clear();
    this.#isExchanging = true;
    try {
      const replies = await this.#store.exchange(
        settlements,
        roleBudgets.map(([roleBudget, wanted]) => leaseRequestOf(roleBudget, wanted)),
      );
      this.#isExchanging = false;
      this.#storeRestored();
      for (const [index, [roleBudget]] of roleBudgets.entries()) this.#applyReply(roleBudget, replies[index]);
    } catch (error) {
      this.#isExchanging = false;
      this.#storeLost(
        error as StoreError,
        settlements,
        roleBudgets.map(([roleBudget]) => roleBudget),
      );
    }
    if (this.#settlements.size + this.#wanted.size > 0) this.#scheduleExchange();
  }

  #applyReply(roleBudget: RoleBudget, reply: LeaseReply | undefined): void {
    const unitLease = this.#leaseOf(roleBudget);
    const nowUs = this.#time.monotonicUs();
    unitLease.isRequesting = false;
    if (reply?.kind === "given") {
      unitLease.keys = claimsOf(roleBudget).map(({ key }) => key);
      unitLease.units += reply.units;
      unitLease.leasedUnits += reply.units;
      unitLease.leasedUs = nowUs;
      this.#leased.add(roleBudget);
      this.#renewal ??= this.#renewLater();
    } else if (reply !== undefined) {
      unitLease.notBeforeUs = nowUs + Math.ceil(reply.waitMs * 1000);
    }
    if (reply?.isStricter && !unitLease.isOverruled) {
      unitLease.isOverruled = true;
      this.#callbacks.overruled(roleBudget);
    }
    this.#callbacks.news(roleBudget);
  }

  #storeLost(error: StoreError, settlements: readonly Settlement[], roleBudgets: readonly RoleBudget[]): void {
    this.#failures += 1;
    this.#retryUs =
      this.#time.monotonicUs() + 1000 * Math.max(100, backoffMs(RETRY, this.#failures, this.#random(), undefined));
    for (const { keys, written, returned } of settlements) {
      const name = keys.join("\n");
      const sum = this.#settlements.get(name) ?? { keys, written: 0, returned: 0 };
      sum.written += written;
      sum.returned += returned;
      this.#settlements.set(name, sum);
    }
    const isFirstFailure = !this.#isAway;
    this.#isAway = true;
    if (isFirstFailure) this.#callbacks.changed({ processes: Math.max(1, this.#store.processes), error });
    // What came up meanwhile is not asked either: nobody waits for an answer that is not going to come.
    const requesting = new Set([...roleBudgets, ...this.#wanted.keys()]);
    this.#wanted.clear();
    for (const roleBudget of requesting) {
      this.#leaseOf(roleBudget).isRequesting = false;
      this.#callbacks.news(roleBudget);
    }
  }

  #storeRestored(): void {
    this.#failures = 0;
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#callbacks.changed(undefined);
  }

  /** Says in time that this process lives and still has what it has. */
  #renewLater(): Timer {
    return this.#time.setTimer(LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const roleBudget of this.#leased) {
        const { unitLease } = roleBudget;
        if (unitLease === undefined) continue;
        this.#returnUnused(roleBudget, unitLease);
        const name = unitLease.keys.join("\n");
        if (unitLease.leasedUnits > 0 && !this.#settlements.has(name))
          this.#settlements.set(name, { keys: unitLease.keys, written: 0, returned: 0 });
      }
      if (this.#leased.size > 0) this.#renewal = this.#renewLater();
      this.#scheduleExchange();
    });
  }
}

function isLimited(roleBudget: RoleBudget): boolean {
  for (let at: Budget | undefined = roleBudget; at; at = at.above) if (at.windows.length > 0) return true;
  return false;
}

function leaseRequestOf(
  roleBudget: RoleBudget,
  { least, most }: { readonly least: number; readonly most: number },
): LeaseRequest {
  return { claims: claimsOf(roleBudget), least, most };
}

/** Budgets without windows have nothing to share. */
function claimsOf(roleBudget: RoleBudget): readonly StoreClaim[] {
  const claims: StoreClaim[] = [];
  if (roleBudget.windows.length > 0)
    claims.push({ key: `lane ${roleBudget.name} ${roleBudget.role}`, ...claimOf(roleBudget) });
  for (let at = roleBudget.above; at; at = at.above) {
    if (at.windows.length > 0) claims.push({ key: `total ${at.name}`, ...claimOf(at) });
  }
  return claims;
}

function claimOf({ windows, policy, spacingUs }: Budget): BudgetClaim {
  return {
    windows: windows.map(({ limit, spanUs }, index) => ({
      limit,
      spanUs,
      windowUs: policy.rates[index]?.windowUs ?? spanUs,
    })),
    spacingUs,
  };
}
