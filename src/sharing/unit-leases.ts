import { StoreError } from "../errors.ts";
import { type Budget, budgetsAbove } from "../limiter/budget.ts";
import type { TakenOver } from "../limiter/recount.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { USE_WITHIN_US } from "../limiter/shared-use.ts";
import type { Waiter } from "../limiter/waiter.ts";
import { type BudgetStore, LEASE_MS, type LeaseReply, type Settlement, type UseReport } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import type { DeadProcesses } from "./dead-processes.ts";
import { MAX_PARTS } from "./exchange-parts.ts";
import { LeasedUnits } from "./leased-units.ts";
import { isLost } from "./lost-data.ts";
import type { PeerChange } from "./peer-change.ts";
import { RequestPace } from "./request-pace.ts";
import { RequestedUnits } from "./requested-units.ts";
import { KEPT_US, SharedUseReports } from "./shared-use-reports.ts";
import { SpareUnits } from "./spare-units.ts";
import { type AwayPolicy, type StoreAway, StoreOutage } from "./store-outage.ts";
import { UnitReplies } from "./unit-replies.ts";
import { type UnitRequest, UnitRequests } from "./unit-requests.ts";

/** If an exchange takes longer, the process was stopped. Meanwhile the store may have dropped an idle budget. */
const LATE_US = LEASE_MS * 1000 - KEPT_US;
/** A process that has leased units asks again after this time, so that it goes on when the units are too old. */
const CONFIRM_AFTER_US = USE_WITHIN_US / 2;
/** Leases are renewed every third of their time. After this time without a reply, the store may have ended some. */
const ENDED_AFTER_US = (LEASE_MS * 2000) / 3;
/** Maximum number of exchanges in flight with a slow store. */
const MAX_EXCHANGES = 4;

export interface UnitLeasesOptions {
  readonly store: BudgetStore;
  readonly time: Time;
  readonly dead: DeadProcesses;
  readonly random: () => number;
  readonly awayPolicy: () => AwayPolicy;
  readonly wake: () => void;
  /** The queued request that has the next turn at the budgets that this role budget shares. */
  readonly nextBeside: (roleBudget: RoleBudget) => Waiter | undefined;
  /** Called when units are requested for a role budget: the records that its next request needs can be read meanwhile. */
  readonly onRequest?: ((roleBudget: RoleBudget) => void) | undefined;
}

/**
 * Leases units from the shared store. What has accumulated since the last call goes in one exchange of bounded size, and
 * only one exchange is in flight, or a few with a slow store. While the store is away nothing is leased: requests are
 * sent on this process's share of the limits, wait or are refused, as the policy says (law S4). The store is tried again
 * after 250 to 500 ms. After each exchange it calls `wake`, and `takeChanges` says what has changed.
 */
export class UnitLeases {
  readonly #store: BudgetStore;
  readonly #time: Time;
  readonly #dead: DeadProcesses;
  readonly #wake: () => void;
  readonly #onRequest: ((roleBudget: RoleBudget) => void) | undefined;
  readonly #nextBeside: (roleBudget: RoleBudget) => Waiter | undefined;
  readonly #outage: StoreOutage;
  readonly #reports = new SharedUseReports();
  /** The outage for which the use that is known was collected. */
  #collectedFor: StoreAway | undefined;
  /** Whether the last exchange has failed. */
  #hasFailed = false;
  readonly #pace: RequestPace;
  readonly #changes: PeerChange[] = [];
  readonly #units: LeasedUnits;
  readonly #spare: SpareUnits;
  readonly #requests: UnitRequests;
  readonly #requested = new RequestedUnits();
  /** Role budgets whose requests wait until the store is back. */
  readonly #awaiting = new Set<RoleBudget>();
  readonly #replies: UnitReplies;
  /** Number of times that the limits of the policy have changed. */
  #limitsVersion = 0;
  #exchanging = 0;
  /** When the last exchange that the store has answered was sent. */
  #answeredUs = Number.NEGATIVE_INFINITY;
  readonly #exchanges = new Set<Promise<void>>();
  #isScheduled = false;
  #isClosed = false;
  /** Whether settlements must be sent without waiting for the next request of units. */
  #isDue = false;

  constructor({ store, time, dead, random, awayPolicy, wake, nextBeside, onRequest }: UnitLeasesOptions) {
    this.#nextBeside = nextBeside;
    this.#onRequest = onRequest;
    this.#store = store;
    this.#time = time;
    this.#dead = dead;
    this.#wake = wake;
    this.#pace = new RequestPace(time);
    this.#units = new LeasedUnits(
      time,
      roleBudget => this.#spare.keeps(roleBudget) || this.#settleNow(),
      () => this.#settleNow(),
      roleBudget => this.returnUnused(roleBudget),
    );
    this.#spare = new SpareUnits({ time, processes: () => store.processes, onKept: () => this.#returnKept() });
    this.#requests = new UnitRequests(time, this.#pace, this.#spare);
    this.#replies = new UnitReplies({
      time,
      units: this.#units,
      requested: this.#requested,
      reports: this.#reports,
      pace: this.#pace,
      onChange: change => this.#changes.push(change),
    });
    this.#outage = new StoreOutage({ time, random, policy: awayPolicy, probe: () => this.#scheduleExchange() });
  }

  /** Whether enough units are leased to send `units` now. Does not ask the store. */
  has(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    if (units === 0 || this.#outage.isSharing || !roleBudget.isLimited) return true;
    const { unitLease } = roleBudget;
    if (unitLease === undefined || unitLease.unusedUnits < units) return false;
    return nowUs >= unitLease.leasedUs && nowUs < unitLease.usableUntilUs;
  }

  /**
   * As `has`, for a request that has the turn. Missing units are requested, up to `wanted` for the requests behind it.
   */
  ensure(roleBudget: RoleBudget, units: number, wanted: number, nowUs: number): boolean {
    this.retryStore(nowUs);
    const unitLease = this.#units.leaseOf(roleBudget);
    if (this.has(roleBudget, units, nowUs)) {
      // Asks in time for a reply before the leased units are too old to be used.
      const ageUs = nowUs - Math.max(unitLease.leasedUs, unitLease.contactUs);
      if (ageUs >= CONFIRM_AFTER_US && this.#outage.away === undefined) this.#request(roleBudget, units, wanted);
      return true;
    }
    if (unitLease.unusedUnits >= units && unitLease.leasedUs > nowUs) return false;
    this.#units.returnUnused(roleBudget);
    if (this.#outage.away !== undefined) {
      this.awaitStore(roleBudget);
      return false;
    }
    if (roleBudget.storeReadyUs(units) <= nowUs) this.#request(roleBudget, units, wanted);
    return false;
  }

  /** The budget above of which all units that may be free are requested; undefined if the units may be requested now. */
  requestedOut(roleBudget: RoleBudget, units: number, nowUs: number): Budget | undefined {
    if (this.#outage.away !== undefined || roleBudget.unitLease?.isRequesting) return undefined;
    if (this.has(roleBudget, units, nowUs)) return undefined;
    return budgetsAbove(roleBudget).find(budget => budget.isRequestedOut(units, nowUs));
  }

  /** Keeps leases for the next call that does not wait, for as long as they may be used. */
  keepForNext(roleBudget: RoleBudget, nowUs: number): void {
    this.#units.leaseOf(roleBudget).keptUntilUs = nowUs + USE_WITHIN_US;
  }

  /** Requests of this role budget wait for something else than units. Requests beside it may use its units. */
  returnUnused(roleBudget: RoleBudget): void {
    if (!roleBudget.holdsUnits(1)) return;
    this.#units.returnUnused(roleBudget);
    this.#changes.push({ kind: "earlier", roleBudget });
  }

  /** If no request uses what is left over now, the other processes may. */
  returnUnneeded(roleBudget: RoleBudget): void {
    if (roleBudget.waiting === 0 && !this.#spare.keeps(roleBudget)) this.returnUnused(roleBudget);
  }

  charged(roleBudget: RoleBudget, units: number): void {
    const unitLease = this.#units.leaseOf(roleBudget);
    unitLease.charge(units);
    const wanted = roleBudget.waiting - unitLease.unusedUnits;
    if (wanted <= 0 || this.#outage.away !== undefined) return;
    if (this.#pace.isRunningLow(roleBudget)) this.#requestAhead(roleBudget, units, wanted);
  }

  written(roleBudget: RoleBudget, units: number): void {
    const unleased = this.#units.leaseOf(roleBudget).endUnleased(units);
    if (unleased > 0 && !roleBudget.policy.isShadow)
      this.#reports.sent(roleBudget, { units: unleased, lastUs: this.#time.monotonicUs() });
    this.#units.settle(roleBudget, units - unleased, 0);
    if (this.#reports.hasSent) this.#scheduleReport();
  }

  returned(roleBudget: RoleBudget, units: number): void {
    this.#units.settle(roleBudget, 0, units - this.#units.leaseOf(roleBudget).endUnleased(units));
  }

  /** The policy has other limits. The store has granted unused units under the former ones, which may be looser. */
  limitsChanged(takenOver: readonly TakenOver[]): void {
    this.#limitsVersion += 1;
    this.#requested.clear();
    this.#units.returnAllUnused();
    this.takenOver(takenOver);
  }

  /** These budgets count units that the store does not count for them. */
  takenOver(all: readonly TakenOver[]): void {
    for (const one of all) this.#reports.takenOver(one);
    if (this.#reports.hasSent) this.#scheduleReport();
  }

  /**
   * An operator has changed the rates of these budgets. Their new limits are claimed at once, even by a process that
   * sends nothing: the strictest claim applies to all, so a former claim would delay the other processes.
   */
  ratesOrdered(roleBudgets: readonly RoleBudget[]): void {
    for (const roleBudget of roleBudgets) {
      if (roleBudget.unitLease === undefined) continue;
      this.#units.returnUnused(roleBudget);
      this.#replies.ordered(roleBudget);
      this.#reports.sent(roleBudget, { units: 0, lastUs: 0 });
    }
    if (this.#reports.hasSent) this.#scheduleReport();
  }

  /** The store may have units of this role budget before the time that it has announced. */
  askAgain(roleBudget: RoleBudget): void {
    if (roleBudget.storeReadyUs(roleBudget.unitLease?.refusedUnits ?? 1) === 0) return;
    roleBudget.storeMayHaveUnits();
    this.#changes.push({ kind: "earlier", roleBudget });
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

  /** Returns all units, also those of exchanges in flight, and closes the store. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#outage.close();
    // The store bounds the time that each of them takes. Their replies may set timers, so these are cancelled later.
    await Promise.allSettled(this.#exchanges);
    this.#pace.close();
    this.#spare.close();
    this.#units.close();
    await this.#returnAll();
    await this.#store.close();
  }

  /** If the store is away, the units return when the lease expires. */
  async #returnAll(): Promise<void> {
    if (this.#outage.away !== undefined) return;
    try {
      const { settlements } = this.#units;
      while (settlements.size > 0) await this.#store.exchange(settlements.take(MAX_PARTS), []);
    } catch {
      // The store does not answer: as if it were away.
    }
  }

  #request(roleBudget: RoleBudget, least: number, wanted: number): void {
    const unitLease = this.#units.leaseOf(roleBudget);
    if (unitLease.isRequesting) return;
    unitLease.isRequesting = true;
    this.#requested.requested(roleBudget, least);
    this.#onRequest?.(roleBudget);
    this.#requests.add(roleBudget, least, wanted);
    this.#scheduleExchange();
  }

  /** Requests units before the time at which they can be expected, for the request that will have the turn then. */
  #requestAhead(roleBudget: RoleBudget, least: number, wanted: number): void {
    const next = this.#nextBeside(roleBudget);
    if (next === undefined || next.roleBudget === roleBudget) this.#request(roleBudget, least, wanted);
    else if (next.units <= least || next.roleBudget.storeReadyUs(next.units) <= this.#time.monotonicUs())
      this.#request(next.roleBudget, next.units, next.roleBudget.waiting);
  }

  #settleNow(): void {
    this.#isDue = true;
    this.#scheduleExchange();
  }

  /** Spare units were kept for as long as they may be. */
  #returnKept(): void {
    this.#units.returnAllUnused(roleBudget => roleBudget.waiting > 0 || this.#spare.keeps(roleBudget));
    this.#settleNow();
  }

  /** In a microtask, so that everything of the present turn of the event loop goes in one exchange. */
  #scheduleExchange(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#isClosed) return;
      const exchange = this.#exchange().finally(() => this.#exchanges.delete(exchange));
      this.#exchanges.add(exchange);
    });
  }

  async #exchange(): Promise<void> {
    const { away } = this.#outage;
    // A slow store is asked for the next units while the last ones are still being reported.
    if (this.#exchanging >= (this.#pace.isStoreSlow && away === undefined ? MAX_EXCHANGES : 1)) return;
    if (away !== undefined && !this.#outage.isProbeDue(this.#time.monotonicUs())) {
      // A timer may fire early, or after another exchange has failed.
      this.#outage.probeLater(this.#awaiting.size > 0);
      return;
    }
    const sentUs = this.#time.monotonicUs();
    const version = this.#limitsVersion;
    if (sentUs - this.#answeredUs >= ENDED_AFTER_US) this.#units.abandonLeases();
    this.#collectReports(away);
    const reports =
      away !== undefined || this.#reports.hasCollected ? this.#reports.take(sentUs, MAX_PARTS) : undefined;
    if (this.#units.settlements.size === 0 && this.#requests.size === 0 && reports === undefined) return;
    const settlements = this.#units.settlements.take(MAX_PARTS);
    const hasAllSettlements = this.#units.settlements.size === 0;
    this.#isDue = !hasAllSettlements;
    // No unit is leased before the store has all reports.
    const requests = this.#reports.hasCollected ? [] : this.#requests.take(sentUs, MAX_PARTS);
    const roleBudgets = requests.map(({ roleBudget }) => roleBudget);
    // A slow store gets several parts at once.
    if (this.#hasMore) this.#scheduleExchange();
    // What the store does not have yet. A reply that cannot be applied shows that it has everything.
    let [unsettled, unreported] = [settlements, reports];
    try {
      const replies = await this.#ask(settlements, requests, reports?.reports);
      [unsettled, unreported] = [[], undefined];
      this.#answeredUs = sentUs;
      this.#pace.replied(this.#time.monotonicUs() - sentUs);
      reports?.delivered(this.#time.monotonicUs());
      this.#outage.reached(this.#store.processes);
      // An outage that began meanwhile goes on: the store does not have the reports of it.
      const isOutdated = away !== this.#outage.away;
      // Settlements of abandoned leases must not end later ones.
      if (!isOutdated && !this.#reports.hasCollected && hasAllSettlements) this.#storeRestored();
      for (const [index, request] of requests.entries()) {
        this.#replies.apply(request, replies[index], sentUs);
        this.#requests.replied(request, replies[index]);
        this.#askAhead(request.roleBudget, request.least);
      }
      this.#dropOutdated(roleBudgets, sentUs, version);
      const lost = roleBudgets.filter((_, index) => isLost(replies[index]));
      this.#handleLostData(lost, sentUs, isOutdated);
      // The probe was not sent while this exchange was in flight.
      if (isOutdated) this.#scheduleExchange();
    } catch (error) {
      this.#hasFailed = true;
      unreported?.failed();
      this.#storeLost(this.#outage.failed(error as StoreError, sentUs), unsettled, roleBudgets);
    }
    if (this.#changes.length > 0) this.#wake();
    for (const roleBudget of roleBudgets) this.returnUnneeded(roleBudget);
    if (this.#hasMore) this.#scheduleExchange();
  }

  get #hasMore(): boolean {
    const hasReports = this.#reports.hasCollected || (this.#reports.hasSent && this.#outage.away === undefined);
    return this.#isDue || this.#requests.size > 0 || hasReports;
  }

  /**
   * Collects all use that is known once for each outage. Units that are sent meanwhile are collected after a failure, or
   * when the rest has been reported: with each part, an outage would not end while requests are sent.
   */
  #collectReports(away: StoreAway | undefined): void {
    const isNew = away !== undefined && away !== this.#collectedFor;
    if (isNew || this.#hasFailed || !this.#reports.hasCollected) this.#reports.collect(isNew);
    this.#collectedFor = away;
    this.#hasFailed = false;
  }

  /** One exchange, counted while it is in flight. */
  async #ask(
    settlements: readonly Settlement[],
    requests: readonly UnitRequest[],
    reports: readonly UseReport[] | undefined,
  ): Promise<readonly LeaseReply[]> {
    this.#exchanging += 1;
    try {
      return await this.#store.exchange(
        settlements,
        requests.map(({ roleBudget: _, ...request }) => request),
        reports,
        this.#dead.ids,
      );
    } finally {
      this.#exchanging -= 1;
    }
  }

  /** Asks for the next units before they are free, so that they are leased by then, however far the store is. */
  #askAhead(roleBudget: RoleBudget, least: number): void {
    const unitLease = this.#units.leaseOf(roleBudget);
    const ms = this.#pace.askAhead(roleBudget, () => {
      if (unitLease.unusedUnits > 0 || this.#outage.away !== undefined) return;
      if (roleBudget.storeReadyUs(least) <= this.#time.monotonicUs()) return;
      if (roleBudget.waiting > 0) this.#requestAhead(roleBudget, least, roleBudget.waiting);
      // A caller that was refused may try again, and then the store is asked.
      else roleBudget.storeMayHaveUnits();
    });
    unitLease.askUs = ms === undefined ? 0 : this.#time.monotonicUs() + Math.ceil(ms * 1000);
  }

  /** A store that is away is tried at the next probe; else the report goes with the next exchange, which is now. */
  #scheduleReport(): void {
    if (this.#outage.away === undefined) this.#scheduleExchange();
    else this.#outage.probeLater(false);
  }

  /**
   * Drops replies to requests that were sent before the limits changed, or were under way when the store was lost. After a
   * process has died, only the time that the store announced is dropped.
   */
  #dropOutdated(roleBudgets: readonly RoleBudget[], sentUs: number, limitsVersion: number): void {
    const areOutdated = limitsVersion !== this.#limitsVersion || this.#outage.away !== undefined;
    for (const roleBudget of roleBudgets)
      if (areOutdated || this.#replies.isOrderedSince(roleBudget, sentUs)) this.#dropReply(roleBudget);
    if (this.#dead.addedUs <= sentUs) return;
    for (const roleBudget of roleBudgets) roleBudget.storeMayHaveUnits();
  }

  /**
   * The store has lost the use of these role budgets. After a long exchange it may only have dropped idle budgets. In an
   * outage that began meanwhile (`isOutdated`), the probe reports the use.
   */
  #handleLostData(lost: readonly RoleBudget[], sentUs: number, isOutdated: boolean): void {
    if (lost.length === 0) return;
    this.#units.abandonLeases();
    if (isOutdated || this.#time.monotonicUs() - sentUs >= LATE_US) {
      for (const roleBudget of lost) this.#dropReply(roleBudget);
      return;
    }
    this.#storeLost(this.#outage.failed(new StoreError(LOST_DATA), sentUs, true), [], lost);
    if (this.#outage.isProbeDue(this.#time.monotonicUs())) this.#scheduleExchange();
  }

  /** A reply is outdated: its units are returned, and the store is asked again. */
  #dropReply(roleBudget: RoleBudget): void {
    this.#units.returnUnused(roleBudget);
    roleBudget.storeMayHaveUnits();
  }

  #storeLost(isFirstFailure: boolean, settlements: readonly Settlement[], roleBudgets: readonly RoleBudget[]): void {
    this.#units.settlements.restore(settlements);
    if (isFirstFailure) this.#changes.push({ kind: "store", shares: "limits", away: this.#outage.away });
    // Units that were not needed yet, or leased ahead, would be used when the store has long been away.
    this.#units.returnAllUnused();
    // Requests to the store that were not sent yet are dropped too, so that no waiting request depends on a reply that
    // will not come. Requests that wait for the store are tried again: if they still wait, the store is tried again.
    const requesting = new Set([...roleBudgets, ...this.#requests.drop(), ...this.#awaiting]);
    this.#awaiting.clear();
    for (const roleBudget of requesting) {
      this.#units.leaseOf(roleBudget).isRequesting = false;
      this.#requested.replied(roleBudget);
      this.#changes.push({ kind: "ready", roleBudget });
    }
    this.#outage.probeLater(false);
  }

  #storeRestored(): void {
    if (this.#outage.away === undefined) return;
    if (!this.#outage.isQuiet) {
      this.#outage.probeWhenQuiet(this.#awaiting.size > 0);
      return;
    }
    this.#outage.end();
    this.#awaiting.clear();
    this.#changes.push({ kind: "store", shares: "limits", away: undefined });
  }
}

const LOST_DATA =
  "the shared store has lost data, or may lack its last changes, so it may not count all requests that were sent";
