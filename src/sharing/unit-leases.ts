import { StoreError } from "../errors.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { TakenOver } from "../limiter/role-budgets.ts";
import { USE_WITHIN_US } from "../limiter/shared-use.ts";
import { UnitLease } from "../limiter/unit-lease.ts";
import { type BudgetStore, LEASE_MS, type LeaseReply, type Settlement, type StoreClaim } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { unreferenced } from "../time/unreferenced.ts";
import type { PeerChange } from "./peer-change.ts";
import { RequestPace } from "./request-pace.ts";
import { applyContact, applyUse, claimsOf, SharedUseReports } from "./shared-use-reports.ts";
import { type AwayPolicy, type StoreAway, StoreOutage } from "./store-outage.ts";

/** The use over all processes is asked for again after this. */
const USE_REFRESH_US = 1_000_000;
/** Bounds one lease: units that this process cannot send at once would be missing in the other processes. */
const MAX_UNITS_PER_LEASE = 64;
/** After an order the store is asked again within this time, as long as another process claims stricter limits. */
const OVERRULED_RETRY_MS = 1000;
/** Exchanges in flight with a store far away. */
const MAX_EXCHANGES = 4;

/** A settlement, and the lease that it is part of. */
interface LeaseSettlement extends Settlement {
  readonly lease: UnitLease;
  written: number;
  returned: number;
}

export interface UnitLeasesOptions {
  readonly store: BudgetStore;
  readonly time: Time;
  readonly random: () => number;
  readonly awayPolicy: () => AwayPolicy;
  readonly wake: () => void;
  /** Called when units are requested for a role budget: what else its next request needs can be read meanwhile. */
  readonly onRequest?: ((roleBudget: RoleBudget) => void) | undefined;
}

/**
 * Leases units from the shared store. Everything that has accumulated since the last call goes in one exchange, and
 * only one exchange is in flight, or a few with a store far away. While the store is away nothing is leased: requests are
 * sent on this process's share of the limits, wait or are refused, as the policy says (law S4). The store is tried again
 * every half second. After each exchange it calls `wake`, and `takeChanges` says what has changed.
 */
export class UnitLeases {
  readonly #store: BudgetStore;
  readonly #time: Time;
  readonly #wake: () => void;
  readonly #onRequest: ((roleBudget: RoleBudget) => void) | undefined;
  readonly #outage: StoreOutage;
  readonly #reports = new SharedUseReports();
  readonly #pace: RequestPace;
  readonly #changes: PeerChange[] = [];
  readonly #wanted = new Map<RoleBudget, { readonly least: number; readonly most: number }>();
  readonly #settlements = new Map<string, LeaseSettlement>();
  /** Role budgets whose requests wait until the store is back. */
  readonly #awaiting = new Set<RoleBudget>();
  /** Role budgets with leased units. */
  readonly #leased = new Set<RoleBudget>();
  /** When an operator has last changed the rates of a budget. */
  readonly #orderedUs = new WeakMap<RoleBudget, number>();
  /** Number of times that the limits of the policy have changed. */
  #limitsVersion = 0;
  #exchanging = 0;
  #isScheduled = false;
  #renewal: Timer | undefined;

  constructor({ store, time, random, awayPolicy, wake, onRequest }: UnitLeasesOptions) {
    this.#onRequest = onRequest;
    this.#store = store;
    this.#time = time;
    this.#wake = wake;
    this.#pace = new RequestPace(time);
    this.#outage = new StoreOutage({ time, random, policy: awayPolicy, probe: () => this.#scheduleExchange() });
  }

  /** Whether enough units are leased to send `units` now. Does not ask the store. */
  has(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    if (units === 0 || this.#outage.isSharing || !roleBudget.isLimited) return true;
    const { unitLease } = roleBudget;
    if (unitLease === undefined || unitLease.unusedUnits < units) return false;
    // A process that has not heard of this budget for a while may have been stopped, or the store may have lost it: a reply
    // about another budget does not show that the store still counts these units.
    const { leasedUs, contactUs } = unitLease;
    return nowUs >= leasedUs && nowUs - Math.max(leasedUs, contactUs) < USE_WITHIN_US;
  }

  /**
   * As `has`, for a request that has the turn. Missing units are requested, up to `wanted` for the requests behind it.
   */
  ensure(roleBudget: RoleBudget, units: number, wanted: number, nowUs: number): boolean {
    this.retryStore(nowUs);
    if (this.has(roleBudget, units, nowUs)) return true;
    const unitLease = this.#leaseOf(roleBudget);
    if (unitLease.unusedUnits >= units && unitLease.leasedUs > nowUs) return false;
    const hasReturned = unitLease.unusedUnits > 0;
    this.#returnUnused(roleBudget, unitLease);
    if (this.#outage.away !== undefined) {
      this.awaitStore(roleBudget);
      return false;
    }
    // Units that are returned with the same exchange are free again, although the store had none left.
    if (hasReturned || unitLease.notBeforeUs <= nowUs) this.#request(roleBudget, units, wanted);
    return false;
  }

  charged(roleBudget: RoleBudget, units: number): void {
    const { unitLease } = roleBudget;
    if (unitLease === undefined) return;
    unitLease.unusedUnits = Math.max(0, unitLease.unusedUnits - units);
    const wanted = roleBudget.waiting - unitLease.unusedUnits;
    if (wanted <= 0 || this.#outage.away !== undefined) return;
    if (this.#pace.isRunningLow(roleBudget)) this.#request(roleBudget, units, wanted);
  }

  written(roleBudget: RoleBudget, units: number): void {
    const leased = roleBudget.unitLease?.leasedUnits ?? 0;
    if (units > leased && !roleBudget.policy.isShadow)
      this.#reports.sent(roleBudget, { units: units - leased, lastUs: this.#time.monotonicUs() });
    this.#settle(roleBudget, units, 0);
    if (this.#reports.hasSent) this.#scheduleReport();
  }

  returned(roleBudget: RoleBudget, units: number): void {
    this.#settle(roleBudget, 0, units);
  }

  /** The policy has other limits. The store has granted unused units under the former ones, which may be looser. */
  limitsChanged(takenOver: readonly TakenOver[]): void {
    this.#limitsVersion += 1;
    for (const roleBudget of this.#leased) this.#returnUnused(roleBudget, this.#leaseOf(roleBudget));
    for (const one of takenOver) this.#reports.takenOver(one);
    if (this.#reports.hasSent) this.#scheduleReport();
  }

  /**
   * An operator has changed the rates of these budgets. Their new limits are claimed at once, also by a process that sends
   * nothing: the strictest claim applies to all, and a former one would delay the others.
   */
  ratesOrdered(roleBudgets: readonly RoleBudget[]): void {
    for (const roleBudget of roleBudgets) {
      const { unitLease } = roleBudget;
      if (unitLease === undefined) continue;
      this.#returnUnused(roleBudget, unitLease);
      this.#orderedUs.set(roleBudget, this.#time.monotonicUs());
      this.#reports.sent(roleBudget, { units: 0, lastUs: 0 });
    }
    if (this.#reports.hasSent) this.#scheduleReport();
  }

  /** A request of this role budget waits until the store is back. */
  awaitStore(roleBudget: RoleBudget): void {
    this.#awaiting.add(roleBudget);
    this.#outage.probeLater(true);
  }

  get away(): StoreAway | undefined {
    return this.#outage.away;
  }

  /** The store has answered in another part of the program. */
  reached(): void {
    this.#outage.reached(this.#store.processes);
  }

  /** The store has failed in another part of the program. */
  failed(error: StoreError): void {
    this.#storeLost(this.#outage.failedElsewhere(error), [], []);
  }

  takeChanges(): readonly PeerChange[] {
    return this.#changes.splice(0);
  }

  /** Called for each new request: tries a store that is away again, if its retry time has come. */
  retryStore(nowUs: number): void {
    if (this.#outage.away === undefined) return;
    if (this.#outage.isProbeDue(nowUs)) this.#scheduleExchange();
    else this.#outage.probeLater(false);
  }

  /** Returns all units and closes the store. */
  async close(): Promise<void> {
    this.#renewal?.cancel();
    this.#pace.close();
    this.#outage.close();
    for (const roleBudget of this.#leased) this.#settle(roleBudget, 0, roleBudget.unitLease?.leasedUnits ?? 0);
    const last = [...this.#settlements.values()];
    this.#settlements.clear();
    // If the store is away, the units return when the lease expires.
    if (last.length > 0 && this.#outage.away === undefined)
      await this.#store.exchange(last.map(plainSettlement), []).catch(() => undefined);
    await this.#store.close();
  }

  #leaseOf(roleBudget: RoleBudget): UnitLease {
    roleBudget.unitLease ??= new UnitLease();
    return roleBudget.unitLease;
  }

  #request(roleBudget: RoleBudget, least: number, wanted: number): void {
    const unitLease = this.#leaseOf(roleBudget);
    if (unitLease.isRequesting) return;
    unitLease.isRequesting = true;
    this.#pace.asking(roleBudget);
    this.#onRequest?.(roleBudget);
    this.#wanted.set(roleBudget, { least, most: Math.max(least, Math.min(wanted, MAX_UNITS_PER_LEASE)) });
    this.#scheduleExchange();
  }

  #returnUnused(roleBudget: RoleBudget, unitLease: UnitLease): void {
    if (unitLease.unusedUnits === 0) return;
    const { unusedUnits } = unitLease;
    unitLease.unusedUnits = 0;
    this.#settle(roleBudget, 0, unusedUnits);
  }

  #settle(roleBudget: RoleBudget, written: number, returned: number): void {
    const { unitLease } = roleBudget;
    if (unitLease === undefined || unitLease.leasedUnits === 0 || written + returned === 0) return;
    // Units that were granted while the store was away were never leased.
    for (const { keys, units } of unitLease.end(written)) this.#addSettlement(unitLease, keys, units, 0);
    for (const { keys, units } of unitLease.end(returned)) this.#addSettlement(unitLease, keys, 0, units);
    if (unitLease.leasedUnits === 0) this.#leased.delete(roleBudget);
    this.#scheduleExchange();
  }

  #addSettlement(lease: UnitLease, keys: readonly string[], written: number, returned: number): void {
    const name = keys.join("\n");
    const sum = this.#settlements.get(name) ?? { lease, keys, written: 0, returned: 0 };
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
    const { away } = this.#outage;
    // A store far away is asked for the next units while the last ones are still being reported.
    if (this.#exchanging >= (this.#pace.isFar && away === undefined ? MAX_EXCHANGES : 1)) return;
    if (away !== undefined && !this.#outage.isProbeDue(this.#time.monotonicUs())) {
      // A timer may fire early, or after another exchange has failed.
      this.#outage.probeLater(this.#awaiting.size > 0);
      return;
    }
    const settlements: readonly LeaseSettlement[] = [...this.#settlements.values()];
    const wanted = [...this.#wanted];
    const sentUs = this.#time.monotonicUs();
    const version = this.#limitsVersion;
    const reports = away !== undefined || this.#reports.hasSent ? this.#reports.take(sentUs) : undefined;
    if (settlements.length + wanted.length === 0 && reports === undefined) return;
    this.#settlements.clear();
    this.#wanted.clear();
    this.#exchanging += 1;
    const roleBudgets = wanted.map(([roleBudget]) => roleBudget);
    const claims = roleBudgets.map(roleBudget => claimsOf(roleBudget, sentUs));
    try {
      const replies = await this.#store.exchange(
        settlements.map(plainSettlement),
        wanted.map(([roleBudget, { least, most }], index) => ({
          claims: claims[index] ?? [],
          least,
          most,
          aheadMs: this.#pace.aheadMs(roleBudget),
          wantsUse: sentUs - (roleBudget.sharedUse?.sentUs ?? Number.NEGATIVE_INFINITY) >= USE_REFRESH_US,
        })),
        reports?.reports,
      );
      this.#exchanging -= 1;
      this.#pace.replied(this.#time.monotonicUs() - sentUs);
      reports?.delivered(this.#time.monotonicUs());
      for (const { lease } of settlements) lease.contactUs = this.#time.monotonicUs();
      this.#storeRestored();
      for (const [index, [roleBudget, { least }]] of wanted.entries()) {
        this.#applyReply(roleBudget, claims[index] ?? [], replies[index], sentUs);
        this.#askAhead(roleBudget, least);
      }
      // A reply that was under way when the store was lost grants nothing.
      if (version !== this.#limitsVersion || this.#outage.away !== undefined)
        for (const roleBudget of roleBudgets) this.#returnUnused(roleBudget, this.#leaseOf(roleBudget));
      for (const roleBudget of roleBudgets) if (this.#isOrderedSince(roleBudget, sentUs)) this.#forget(roleBudget);
      const lost = roleBudgets.filter((_, index) => isLost(replies[index]));
      if (lost.length > 0) {
        this.#storeLost(this.#outage.failed(new StoreError(LOST_DATA), true), [], lost);
        if (this.#outage.isProbeDue(this.#time.monotonicUs())) this.#scheduleExchange();
      }
    } catch (error) {
      this.#exchanging -= 1;
      reports?.failed();
      this.#storeLost(this.#outage.failed(error as StoreError), settlements, roleBudgets);
    }
    if (this.#changes.length > 0) this.#wake();
    // No request uses what is left over now: the other processes may.
    for (const roleBudget of roleBudgets)
      if (roleBudget.waiting === 0) this.#returnUnused(roleBudget, this.#leaseOf(roleBudget));
    if (this.#settlements.size + this.#wanted.size > 0) this.#scheduleExchange();
  }

  /** Asks for the next units before they are free, so that they are leased by then, however far the store is. */
  #askAhead(roleBudget: RoleBudget, least: number): void {
    this.#pace.askAhead(roleBudget, () => {
      const { unusedUnits, notBeforeUs } = this.#leaseOf(roleBudget);
      if (roleBudget.waiting === 0 || unusedUnits > 0 || this.#outage.away !== undefined) return;
      if (notBeforeUs > this.#time.monotonicUs()) this.#request(roleBudget, least, roleBudget.waiting);
    });
  }

  /** A store that is away is tried at the next probe; else the report goes with the next exchange, which is now. */
  #scheduleReport(): void {
    if (this.#outage.away === undefined) this.#scheduleExchange();
    else this.#outage.probeLater(false);
  }

  /** A reload may have changed the budgets since the `claims` were sent. */
  #applyReply(
    roleBudget: RoleBudget,
    claims: readonly StoreClaim[],
    reply: LeaseReply | undefined,
    sentUs: number,
  ): void {
    const unitLease = this.#leaseOf(roleBudget);
    const nowUs = this.#time.monotonicUs();
    unitLease.isRequesting = false;
    if (reply !== undefined && !isLost(reply)) {
      unitLease.contactUs = nowUs;
      applyContact(roleBudget, claims, reply.kind === "wait" ? reply.key : undefined, nowUs);
      this.#reports.known(roleBudget, nowUs);
    }
    if (reply?.use !== undefined) {
      applyUse(roleBudget, claims, reply.use, sentUs, nowUs);
    }
    if (reply?.kind === "granted") {
      const keys = claims.map(({ key }) => key);
      unitLease.add(keys, reply.units, nowUs, Math.ceil((reply.delayMs ?? 0) * 1000));
      this.#leased.add(roleBudget);
      this.#renewal ??= this.#renewLater();
    }
    if (reply !== undefined) {
      // Another process may still claim the limits of before the order. If it is idle, its claim ends with its lease.
      const isOverruled = reply.isStricter && this.#isOrderedSince(roleBudget, nowUs - LEASE_MS * 1000);
      const waitMs = isOverruled ? Math.min(waitMsOf(reply), OVERRULED_RETRY_MS) : waitMsOf(reply);
      const waitUs = Math.ceil(waitMs * 1000);
      unitLease.notBeforeUs = waitUs === 0 ? 0 : nowUs + waitUs;
      this.#pace.adjust(roleBudget, reply);
    }
    if (reply?.isStricter && !unitLease.isOverruled) {
      unitLease.isOverruled = true;
      this.#changes.push({ kind: "overruled", roleBudget });
    }
    this.#changes.push({ kind: "ready", roleBudget });
  }

  #isOrderedSince(roleBudget: RoleBudget, us: number): boolean {
    return (this.#orderedUs.get(roleBudget) ?? Number.NEGATIVE_INFINITY) >= us;
  }

  /** A reply that was under way when the rates changed grants nothing, and says nothing about the new rates. */
  #forget(roleBudget: RoleBudget): void {
    const unitLease = this.#leaseOf(roleBudget);
    this.#returnUnused(roleBudget, unitLease);
    unitLease.notBeforeUs = 0;
  }

  #storeLost(
    isFirstFailure: boolean,
    settlements: readonly LeaseSettlement[],
    roleBudgets: readonly RoleBudget[],
  ): void {
    for (const { lease, keys, written, returned } of settlements) this.#addSettlement(lease, keys, written, returned);
    if (isFirstFailure) this.#changes.push({ kind: "store", shares: "limits", away: this.#outage.away });
    // Units that were not needed yet, or leased ahead, would be used when the store has long been away.
    for (const roleBudget of this.#leased) this.#returnUnused(roleBudget, this.#leaseOf(roleBudget));
    // Requests that accumulated during the exchange are dropped too, so that no waiting request depends on a reply that
    // will not come.
    // Those that wait for the store are tried again too: if they still wait, the store is tried again.
    const requesting = new Set([...roleBudgets, ...this.#wanted.keys(), ...this.#awaiting]);
    this.#wanted.clear();
    this.#awaiting.clear();
    for (const roleBudget of requesting) {
      this.#leaseOf(roleBudget).isRequesting = false;
      this.#changes.push({ kind: "ready", roleBudget });
    }
    this.#outage.probeLater(false);
  }

  #storeRestored(): void {
    this.#outage.reached(this.#store.processes);
    if (this.#outage.away === undefined) return;
    if (!this.#outage.isQuiet) {
      this.#outage.probeLater(true);
      return;
    }
    this.#outage.end();
    this.#awaiting.clear();
    this.#changes.push({ kind: "store", shares: "limits", away: undefined });
  }

  /** Renews the leases of this process well before they expire, and returns unused units. */
  #renewLater(): Timer {
    return unreferenced(this.#time, LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const roleBudget of this.#leased) {
        const { unitLease } = roleBudget;
        if (unitLease === undefined) continue;
        this.#returnUnused(roleBudget, unitLease);
        // A settlement of nothing renews the lease.
        for (const keys of unitLease.keys) this.#addSettlement(unitLease, keys, 0, 0);
      }
      if (this.#leased.size > 0) this.#renewal = this.#renewLater();
      this.#scheduleExchange();
    });
  }
}

const LOST_DATA = "the store has lost its data: what was sent before is not known any more";

/** What the store gets. */
function plainSettlement({ keys, written, returned }: LeaseSettlement): Settlement {
  return { keys, written, returned };
}

function isLost(reply: LeaseReply | undefined): boolean {
  return reply?.kind === "wait" && reply.isLost === true;
}

/** When the next units can be expected; 0 if the process may ask at any time. */
function waitMsOf(reply: LeaseReply): number {
  if (reply.kind === "wait") return reply.waitMs;
  return reply.isAlone ? 0 : (reply.nextMs ?? 0);
}
