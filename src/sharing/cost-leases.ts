import type { StoreError } from "../errors.ts";
import type { Budget } from "../limiter/budget.ts";
import type { Costs } from "../limiter/charge.ts";
import type { CostLog } from "../limiter/cost-log.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { UnitLease } from "../limiter/unit-lease.ts";
import { type BudgetStore, LEASE_MS, type LeaseReply, type Settlement, type StoreClaim } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import type { DeadProcesses } from "./dead-processes.ts";
import { MAX_PARTS, takeFirst } from "./exchange-parts.ts";
import { isLost } from "./lost-data.ts";
import type { PeerChange } from "./peer-change.ts";
import { Settlements } from "./settlements.ts";

/** As with leased units, a leased amount that is not used within this time is returned. */
const USE_WITHIN_US = 1_000_000;
/** At most the costs of this many requests are leased at once. */
const MAX_REQUESTS_PER_LEASE = 16;
/** Leases are renewed every third of their time. After this time without a reply, the store may have ended some. */
const ENDED_AFTER_US = (LEASE_MS * 2000) / 3;

/** One unit of a role budget, such as its credits. */
interface LeasedCost {
  readonly roleBudget: RoleBudget;
  readonly cost: CostLog;
}

/** At least `least` of it is requested, and at most `most`. */
interface WantedCost extends LeasedCost {
  readonly least: number;
  readonly most: number;
}

/**
 * Leases amounts of other units than requests. In the store, a unit is a budget of its own, beside that of the requests:
 * `lane api.example.org metadata credits`. A request needs its units and all its costs, and holds none while it waits for
 * longer than a second. While the store is away, nothing is leased. After each exchange it calls `wake`, and
 * `takeChanges` says what has changed.
 */
export class CostLeases {
  readonly #store: BudgetStore;
  readonly #time: Time;
  readonly #dead: DeadProcesses;
  readonly #isAway: () => boolean;
  readonly #wake: () => void;
  readonly #changes: PeerChange[] = [];
  readonly #refused = new Set<RoleBudget>();
  readonly #wanted = new Map<CostLog, WantedCost>();
  /** Amounts that were used beyond the estimates, to be leased from the store as soon as they are free. */
  readonly #debts = new Map<CostLog, LeasedCost & { amount: number }>();
  readonly #settlements = new Settlements();
  readonly #leased = new Map<CostLog, RoleBudget>();
  /** Number of times that the limits of the policy have changed. */
  #limitsVersion = 0;
  /** When the last exchange that the store has answered was sent. */
  #answeredUs = Number.NEGATIVE_INFINITY;
  #isExchanging = false;
  #lastExchange: Promise<void> | undefined;
  #isScheduled = false;
  #isClosed = false;
  /** Something has to be exchanged that the last exchange did not include. */
  #isDue = false;
  #renewal: Timer | undefined;
  /** Ends the time for which amounts are kept for calls that do not wait. */
  #keeping: Timer | undefined;
  #retry: Timer | undefined;
  #retryUs = 0;

  /** `isAway`: the unit leases have found that the store does not answer, and try it again. */
  constructor(store: BudgetStore, time: Time, dead: DeadProcesses, isAway: () => boolean, wake: () => void) {
    this.#store = store;
    this.#time = time;
    this.#dead = dead;
    this.#isAway = isAway;
    this.#wake = wake;
  }

  /** Whether the costs of a request are leased. Does not ask the store. */
  has(roleBudget: RoleBudget, costs: Costs | undefined, nowUs: number): boolean {
    return costs === undefined || this.#missing(roleBudget, costs, nowUs).length === 0;
  }

  /** As `has`, for a request that has the turn. Missing amounts are requested, also for the requests behind it. */
  ensure(roleBudget: RoleBudget, costs: Costs | undefined, queued: number, nowUs: number): boolean {
    if (costs === undefined) return true;
    const missing = this.#missing(roleBudget, costs, nowUs);
    for (const cost of missing) {
      const lease = leaseOf(cost);
      this.#returnUnused(cost, lease);
      const least = costs.get(cost.unit) ?? 0;
      if (lease.isRequesting || lease.readyUs(least) > nowUs) continue;
      lease.isRequesting = true;
      this.#wanted.set(cost, { roleBudget, cost, least, most: least * Math.min(queued, MAX_REQUESTS_PER_LEASE) });
      this.#scheduleExchange();
    }
    return missing.length === 0;
  }

  charged(roleBudget: RoleBudget, costs: Costs): void {
    for (const cost of roleBudget.costLogs) leaseOf(cost).charge(costs.get(cost.unit) ?? 0);
  }

  /**
   * What a request really used of the amounts that it was charged. What was not leased for it, or what the store may
   * count for it no longer, becomes a debt.
   */
  used(roleBudget: RoleBudget, charged: Costs, used: Costs): void {
    for (const cost of roleBudget.costLogs) {
      const amount = used.get(cost.unit) ?? 0;
      const ofRequest = charged.get(cost.unit) ?? 0;
      const reserved = ofRequest - leaseOf(cost).endUnleased(ofRequest);
      this.#settle(cost, Math.min(amount, reserved), Math.max(0, reserved - amount));
      // In shadow mode nothing is leased, and other processes do not wait for it.
      if (amount > reserved && !roleBudget.policy.isShadow && claimsOf({ roleBudget, cost }).length > 0)
        this.#owe({ roleBudget, cost }, amount - reserved);
    }
  }

  /** The policy has other limits. The store has granted unused amounts under the former ones, which may be looser. */
  limitsChanged(): void {
    this.#limitsVersion += 1;
    for (const cost of this.#leased.keys()) this.#returnUnused(cost, leaseOf(cost));
  }

  /** The store may have amounts of this role budget before the time that it has announced. */
  askAgain(roleBudget: RoleBudget): void {
    let isDelayed = false;
    for (const { unitLease } of roleBudget.costLogs) {
      if (unitLease === undefined || unitLease.notBeforeUs === 0) continue;
      unitLease.notBeforeUs = 0;
      isDelayed = true;
    }
    if (isDelayed) this.#changes.push({ kind: "earlier", roleBudget });
  }

  isRequesting({ costLogs }: RoleBudget): boolean {
    return costLogs.some(({ unitLease }) => unitLease?.isRequesting === true);
  }

  /** The store is back: amounts that are still to be reported or returned are sent. */
  resume(): void {
    this.#scheduleExchange();
  }

  takeChanges(): readonly PeerChange[] {
    return this.#changes.splice(0);
  }

  /** The role budgets whose requests have to wait for costs, as the store has said since the last call. */
  takeRefused(): readonly RoleBudget[] {
    const refused = [...this.#refused];
    this.#refused.clear();
    return refused;
  }

  /** Returns all amounts, also those of an exchange in flight. The store is closed by the unit leases. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lastExchange?.catch(() => undefined);
    for (const timer of [this.#renewal, this.#retry, this.#keeping]) timer?.cancel();
    for (const cost of this.#leased.keys()) this.#settle(cost, 0, cost.unitLease?.leasedUnits ?? 0);
    try {
      while (this.#settlements.size > 0) await this.#store.exchange(this.#settlements.take(MAX_PARTS), []);
    } catch {
      // If the store is away, the amounts return when the lease expires.
    }
  }

  #missing(roleBudget: RoleBudget, costs: Costs, nowUs: number): readonly CostLog[] {
    return roleBudget.costLogs.filter(cost => {
      const amount = costs.get(cost.unit) ?? 0;
      if (amount === 0 || claimsOf({ roleBudget, cost }).length === 0) return false;
      const { unitLease } = cost;
      return unitLease === undefined || unitLease.unusedUnits < amount || nowUs - unitLease.leasedUs >= USE_WITHIN_US;
    });
  }

  /** What is above the largest limit fills no further window, so it need not be paid. */
  #owe(owing: LeasedCost, amount: number): void {
    const debt = this.#debts.get(owing.cost) ?? { ...owing, amount: 0 };
    const limits = claimsOf(owing).flatMap(({ windows }) => windows.map(({ limit }) => limit));
    debt.amount = Math.min(debt.amount + amount, Math.max(...limits));
    this.#debts.set(owing.cost, debt);
    this.#scheduleExchange();
  }

  #returnUnused(cost: CostLog, lease: UnitLease): void {
    const { unusedUnits } = lease;
    lease.unusedUnits = 0;
    this.#settle(cost, 0, unusedUnits);
  }

  /** What no request uses now: the other processes may. */
  #returnUnneeded(leased: Iterable<readonly [CostLog, RoleBudget]>): void {
    const nowUs = this.#time.monotonicUs();
    for (const [cost, roleBudget] of leased) {
      if (!roleBudget.needsLeases(nowUs)) this.#returnUnused(cost, leaseOf(cost));
      else if (roleBudget.waiting === 0)
        this.#keeping ??= setUnreferencedTimer(this.#time, USE_WITHIN_US / 1000, () => {
          this.#keeping = undefined;
          this.#returnUnneeded(this.#leased);
        });
    }
  }

  #settle(cost: CostLog, written: number, returned: number): void {
    const { unitLease } = cost;
    if (unitLease === undefined || written + returned === 0) return;
    this.#settlements.addWritten(unitLease.end(written));
    this.#settlements.addReturned(unitLease.end(returned));
    if (unitLease.leasedUnits === 0) this.#leased.delete(cost);
    this.#scheduleExchange();
  }

  /**
   * The store may have ended this lease, or lost it. Amounts of grants that are not settled yet count as written now if it
   * still has the lease, and become debts when they are settled. Otherwise their settlements would end leases of later
   * grants.
   */
  #abandonLease(cost: CostLog): void {
    const lease = leaseOf(cost);
    this.#returnUnused(cost, lease);
    this.#settlements.addWritten(lease.abandon());
    this.#leased.delete(cost);
  }

  /** In a microtask, so that everything of the present turn of the event loop goes in one exchange. */
  #scheduleExchange(): void {
    this.#isDue = true;
    if (this.#isScheduled || this.#isExchanging) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (!this.#isClosed && !this.#isExchanging) this.#lastExchange = this.#exchange();
    });
  }

  async #exchange(): Promise<void> {
    if (this.#isAway()) return;
    const sentUs = this.#time.monotonicUs();
    if (sentUs - this.#answeredUs >= ENDED_AFTER_US) for (const cost of this.#leased.keys()) this.#abandonLease(cost);
    const settlements = this.#settlements.take(MAX_PARTS);
    // Settlements of abandoned leases must not end later ones: nothing is leased before the store has all settlements.
    const hasAllSettlements = this.#settlements.size === 0;
    const wanted = hasAllSettlements ? takeFirst(this.#wanted, MAX_PARTS).map(([, want]) => want) : [];
    const debts = hasAllSettlements ? [...this.#debts.values()] : [];
    if (settlements.length + wanted.length + debts.length === 0) return;
    this.#isDue = !hasAllSettlements || this.#wanted.size > 0;
    this.#isExchanging = true;
    const version = this.#limitsVersion;
    // A debt is paid in parts: it may be larger than the limit.
    const requests = [...debts.map(debt => ({ ...debt, least: 1, most: debt.amount })), ...wanted];
    let unsettled: readonly Settlement[] = settlements;
    try {
      const asked = requests.map(({ roleBudget, cost, least, most }) => ({
        claims: knownClaimsOf({ roleBudget, cost }, sentUs),
        least,
        most,
      }));
      const replies = await this.#store.exchange(settlements, asked, [], this.#dead.ids);
      unsettled = [];
      this.#answeredUs = sentUs;
      const keysOf = (index: number) => asked[index]?.claims.map(({ key }) => key) ?? [];
      for (const [index, debt] of debts.entries()) this.#pay(debt, keysOf(index), replies[index]);
      for (const [index, want] of wanted.entries())
        this.#applyReply(want, keysOf(debts.length + index), replies[debts.length + index]);
      const isOutdated = version !== this.#limitsVersion;
      if (isOutdated) for (const { cost } of wanted) this.#returnUnused(cost, leaseOf(cost));
      if (isOutdated || this.#dead.addedUs > sentUs) for (const { cost } of wanted) leaseOf(cost).notBeforeUs = 0;
    } catch (error) {
      this.#settlements.restore(unsettled);
      this.#changes.push({ kind: "store", shares: "limits", away: { processes: 1, error: error as StoreError } });
      for (const { roleBudget, cost } of wanted) {
        leaseOf(cost).isRequesting = false;
        this.#changes.push({ kind: "ready", roleBudget });
      }
    }
    this.#isExchanging = false;
    if (this.#changes.length > 0) this.#wake();
    this.#returnUnneeded(wanted.map(({ cost, roleBudget }) => [cost, roleBudget]));
    if (this.#isDue) this.#scheduleExchange();
  }

  /** `keys` are those of the request: a reload may have changed the budgets since. */
  #applyReply({ roleBudget, cost, least }: WantedCost, keys: readonly string[], reply: LeaseReply | undefined): void {
    const lease = leaseOf(cost);
    lease.isRequesting = false;
    if (reply?.kind === "granted") this.#granted({ roleBudget, cost }, keys, reply.units);
    else if (isLost(reply)) this.#abandonLease(cost);
    else if (reply !== undefined) {
      // Stricter limits of another process hold no longer than its claim, which ends with its lease.
      const waitMs = reply.isStricter ? Math.min(reply.waitMs, LEASE_MS) : reply.waitMs;
      lease.notBeforeUs = this.#time.monotonicUs() + Math.ceil(waitMs * 1000);
      lease.refusedUnits = least;
      this.#refused.add(roleBudget);
    }
    this.#changes.push({ kind: "ready", roleBudget });
  }

  #granted({ roleBudget, cost }: LeasedCost, keys: readonly string[], units: number): void {
    const lease = leaseOf(cost);
    lease.add(keys, units, this.#time.monotonicUs());
    lease.contactUs = lease.leasedUs;
    this.#leased.set(cost, roleBudget);
    this.#renewal ??= this.#renewLater();
  }

  #pay(debt: LeasedCost & { amount: number }, keys: readonly string[], reply: LeaseReply | undefined): void {
    if (reply?.kind === "granted") {
      this.#granted(debt, keys, reply.units);
      leaseOf(debt.cost).unusedUnits -= reply.units;
      this.#settle(debt.cost, reply.units, 0);
      debt.amount -= reply.units;
    } else if (isLost(reply)) this.#abandonLease(debt.cost);
    if (debt.amount === 0) this.#debts.delete(debt.cost);
    else this.#payLater(reply?.kind === "wait" ? reply.waitMs : 1);
  }

  /** One timer for all debts: it fires when the first of them may be paid. */
  #payLater(ms: number): void {
    const retryUs = this.#time.monotonicUs() + ms * 1000;
    if (this.#retry !== undefined && this.#retryUs <= retryUs) return;
    this.#retry?.cancel();
    this.#retryUs = retryUs;
    this.#retry = setUnreferencedTimer(this.#time, ms, () => {
      this.#retry = undefined;
      this.#scheduleExchange();
    });
  }

  /** Renews the leases of this process well before they expire, and returns what is unused. */
  #renewLater(): Timer {
    return setUnreferencedTimer(this.#time, LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const cost of this.#leased.keys()) {
        const lease = leaseOf(cost);
        this.#returnUnused(cost, lease);
        if (!this.#isAway()) for (const keys of lease.keys) this.#settlements.addRenewal(keys);
      }
      if (this.#leased.size > 0) this.#renewal = this.#renewLater();
      this.#scheduleExchange();
    });
  }
}

function leaseOf(cost: CostLog): UnitLease {
  cost.unitLease ??= new UnitLease();
  return cost.unitLease;
}

/** The claims of a request to the store. If amounts are leased, the store says if it has lost their budgets. */
function knownClaimsOf(leased: LeasedCost, nowUs: number): readonly StoreClaim[] {
  const { keys, contactUs } = leaseOf(leased.cost);
  const known = new Set(keys.flat());
  return claimsOf(leased).map(claim => (known.has(claim.key) ? { ...claim, knownAgoUs: nowUs - contactUs } : claim));
}

/** Store keys and limits of the budgets that limit this unit; none if no budget does. */
function claimsOf({ roleBudget, cost: { unit } }: LeasedCost): readonly StoreClaim[] {
  const claims: StoreClaim[] = [];
  for (let at: Budget | undefined = roleBudget; at; at = at.above) {
    const policy = at.policy.costs.find(cost => cost.unit === unit);
    if (policy === undefined) continue;
    const windows = policy.windows.map(({ limit, spanUs }, index) => ({
      limit,
      spanUs,
      windowUs: policy.rates[index]?.windowUs ?? spanUs,
    }));
    claims.push({ key: `${at.storeKey} ${unit}`, windows, spacingUs: 0 });
  }
  return claims;
}
