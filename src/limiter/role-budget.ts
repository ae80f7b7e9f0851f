import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { Constraint, LearnedFrom, OrderedRate } from "../errors.ts";
import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import type { Role } from "../policy/roles.ts";
import { Budget, budgetsAbove, NEEDS_SLOT, storeAwayConstraint } from "./budget.ts";
import { type Charge, type Costs, chargeOf, checkedCosts, costsOf, NO_CHARGE, ONE_UNIT } from "./charge.ts";
import { CostLog } from "./cost-log.ts";
import type { EntryRequest } from "./entry-request.ts";
import { FirstWindows, shortestWindow } from "./first-windows.ts";
import type { LearnedLimits } from "./learned-limits.ts";
import type { FormerBudget } from "./sent-history.ts";
import type { UnitLease } from "./unit-lease.ts";

/** As processes do, a role budget takes its part of a window in this many turns. */
const TURNS_PER_WINDOW = 4;

/** Whether requests wait because the shared store does not answer; the same object for all budgets of a process. */
export interface StoreState {
  isBlocking: boolean;
}

/** The budget of one role at one host or service, the first that a request is charged to. */
export class RoleBudget extends Budget {
  /** The limits in force: the configured ones, tightened by what was learned. */
  declare policy: RoleBudgetPolicy;
  readonly role: Role;
  /** Limits announced by the server that are tighter than the policy. Undefined until there are any. */
  learned: LearnedLimits | undefined = undefined;
  /** What announced the last learned limit; undefined if nothing was learned. */
  learnedFrom: LearnedFrom | undefined = undefined;
  /** False once a reload changed the rates: requests sent before it did not keep the present rates. */
  hasUnchangedRates = true;
  /** Forgotten, or removed by a reload. The object only serves requests that are still in flight. */
  isDetached = false;
  /** Number of reloads with requests in flight. A grant of an older generation is settled with its `RequestBatch`. */
  generation = 0;
  /** Units leased from a shared store. Undefined without a store, or before the first request to it. */
  unitLease: UnitLease | undefined = undefined;
  /** True once a response was recorded. Without responses, requests cannot be sent one after the other. */
  isAnswered = false;
  /** Undefined in the first window of a key, and after those that are tried. */
  #firstWindows: FirstWindows | undefined = undefined;
  /** Requests queued for this budget. */
  waiting = 0;
  acquired = 0;
  refused = 0;
  headSkipped = 0;
  /** Whether requests wait because the shared store does not answer. */
  readonly #store: StoreState;
  /** Whether a request that no window counts (HEAD) gets the next free slot. It alternates: neither kind starves. */
  servesUncountedFirst = false;

  constructor(
    name: string,
    role: Role,
    policy: RoleBudgetPolicy,
    above: Budget | undefined,
    store: StoreState = { isBlocking: false },
  ) {
    super(name, policy, above);
    this.role = role;
    this.#store = store;
    this.trackCosts();
  }

  override get keepsUnlimitedCosts(): boolean {
    return true;
  }

  /** Also waits until the store may have units again. */
  override earliestUs(charge: Charge, nowUs: number): number {
    const ownUs = super.earliestUs(charge, nowUs);
    return this.unitLease === undefined ? ownUs : Math.max(ownUs, this.unitLease.readyUs(charge.units));
  }

  /**
   * When a budget on the path of the request admits it: this one, or one above it. Also waits until the store may have
   * units there, unless they are leased.
   */
  readyAtUs(at: Budget, charge: Charge, nowUs: number): number {
    return at.hasSlot ? this.freeAtUs(at, charge, nowUs) : NEEDS_SLOT;
  }

  /** Whether the units are leased, or are not needed. */
  holdsUnits(units: number): boolean {
    return units === 0 || (this.unitLease?.unusedUnits ?? 0) >= units;
  }

  /** Whether this budget and those above it admit the request now. */
  hasCapacity(charge: Charge, nowUs: number): boolean {
    for (let at: Budget | undefined = this; at; at = at.above)
      if (this.readyAtUs(at, charge, nowUs) > nowUs) return false;
    return true;
  }

  /** When the rates of every budget that applies admit the request. Waiting requests and slots are ignored. */
  freeUs(charge: Charge, nowUs: number): number {
    let us = nowUs;
    for (let at: Budget | undefined = this; at; at = at.above) us = Math.max(us, this.freeAtUs(at, charge, nowUs));
    return us;
  }

  /** As `readyAtUs`, without slots. */
  freeAtUs(at: Budget, charge: Charge, nowUs: number): number {
    const freeUs = at.earliestUs(charge, nowUs);
    return at === this || this.holdsUnits(charge.units) ? freeUs : Math.max(freeUs, at.leaseUs(charge.units));
  }

  /** When the store may have the units in every budget that applies; 0 if that is not known, or if they are leased. */
  storeReadyUs(units: number): number {
    let readyUs = this.leaseUs(units);
    if (!this.holdsUnits(units)) for (const at of budgetsAbove(this)) readyUs = Math.max(readyUs, at.leaseUs(units));
    return readyUs;
  }

  /**
   * The most units that it leases in one turn. Of each limit that it shares with other role budgets it takes an equal part,
   * in several turns. No turn is shorter than `leastUs`, because the store could not grant the units of the next one in time.
   */
  turnUnits(leastUs: number): number {
    let units = Number.POSITIVE_INFINITY;
    for (const { windows, waitingBelow } of budgetsAbove(this))
      if (waitingBelow > 1)
        for (const { limit, spanUs } of windows) {
          const turns = Math.max(1, Math.min(TURNS_PER_WINDOW, Math.floor(spanUs / leastUs)));
          units = Math.min(units, Math.floor(limit / (turns * waitingBelow)));
        }
    return Math.max(1, units);
  }

  /** The store may have units before the time that it has announced. */
  storeMayHaveUnits(): void {
    if (this.unitLease !== undefined) this.unitLease.notBeforeUs = 0;
    for (const at of budgetsAbove(this)) at.fullUntilUs = 0;
  }

  /** Whether its own limits admit the request now, if its units are leased. */
  admits(charge: Charge, nowUs: number): boolean {
    return this.hasSlot && super.earliestUs(charge, nowUs) <= nowUs;
  }

  override leaseUs(units: number): number {
    return this.unitLease?.readyUs(units) ?? 0;
  }

  override storeConstraint(charge: Charge): Constraint | undefined {
    const isDelayed = (this.#store.isBlocking && this.isLimited) || this.exceedsShare(charge);
    return isDelayed ? storeAwayConstraint(this.name) : undefined;
  }

  /** Whether the request needs more than the share of this process, here or of a budget above. */
  exceedsShare(charge: Charge): boolean {
    // All budgets are divided together.
    if (this.policy.undivided === undefined) return false;
    for (let at: Budget | undefined = this; at; at = at.above) if (at.exceedsOwnShare(charge)) return true;
    return false;
  }

  /** Whether requests wait, or leases are kept for the next call that does not wait. */
  needsLeases(nowUs: number): boolean {
    return this.waiting > 0 || this.isTriedAgain(nowUs);
  }

  /** Whether leases are kept for the next call that does not wait. */
  isTriedAgain(nowUs: number): boolean {
    return this.unitLease !== undefined && this.unitLease.keptUntilUs > nowUs;
  }

  /** Whether no request waits for it and a new budget would behave the same (law L11). */
  isEvictable(nowUs: number): boolean {
    const { pace, learned, unitLease } = this;
    return (
      this.waiting === 0 &&
      this.isExpired(nowUs) &&
      (pace === undefined || pace.isNeutral(nowUs)) &&
      (learned === undefined || learned.isLapsed(nowUs)) &&
      (unitLease === undefined || (unitLease.isIdle && unitLease.notBeforeUs <= nowUs))
    );
  }

  /** Whether it has sent one burst and nothing since, nothing is in flight or waits, and nothing was learned. */
  isIdle(nowUs: number): boolean {
    return (
      this.waiting === 0 &&
      this.inFlight === 0 &&
      this.holdUntilUs <= nowUs &&
      this.log.isOneBurst &&
      this.pace === undefined &&
      this.learnedFrom === undefined &&
      this.unitLease === undefined &&
      this.#firstWindows === undefined &&
      this.costLogs.length === 0 &&
      this.refused + this.headSkipped === 0 &&
      !this.servesUncountedFirst
    );
  }

  /** The configured limits, without learned ones. */
  get configured(): RoleBudgetPolicy {
    return this.learned?.base ?? this.policy;
  }

  /** The nearest total above it whose limits an operator has changed; undefined if there is none. */
  get orderedTotal(): Budget | undefined {
    for (let at = this.above; at; at = at.above) if (at.policy.ordered !== undefined) return at;
    return undefined;
  }

  get totalOrder(): OrderedRate | undefined {
    return this.orderedTotal?.order;
  }

  override reload(policy: RoleBudgetPolicy, aimd: AimdPolicy): void {
    if (policy.labels.join() !== this.configured.labels.join()) {
      this.hasUnchangedRates = false;
      // The store had no units under the former limits. That says nothing about the new ones.
      if (this.unitLease !== undefined) this.unitLease.notBeforeUs = 0;
    }
    super.reload(this.learned?.overlay(policy) ?? policy, aimd);
    this.trackCosts();
  }

  /** Applies learned limits on top of the policy. */
  learn(learned: LearnedLimits, aimd: AimdPolicy): void {
    this.learned = learned;
    this.reload(learned.base, aimd);
  }

  /** Drops learned limits. Only for a budget that may be evicted: it then behaves like a new one. */
  unlearn(aimd: AimdPolicy): void {
    const { configured } = this;
    this.learned = undefined;
    this.learnedFrom = undefined;
    this.hasUnchangedRates = true;
    super.reload(configured, aimd);
    this.trackCosts();
  }

  /** Called for each request that is granted, after its units are reserved. */
  countFirstWindows(nowUs: number): void {
    if (!this.isAnswered || this.spacingUs > 0) return;
    const unit = this.log.written + this.log.pending;
    const window = shortestWindow(this.windows);
    if (window === undefined || !FirstWindows.isTried(unit, window)) this.#firstWindows = undefined;
    else {
      this.#firstWindows ??= new FirstWindows();
      this.#firstWindows.granted(unit, window, nowUs);
    }
  }

  /** Whether the second or third window of the key is being tried. */
  get isTried(): boolean {
    return this.#firstWindows !== undefined;
  }

  /** Until when a queued request waits for the answer to the one before (law L12); 0 if it does not. */
  get aloneUntilUs(): number {
    return this.#firstWindows === undefined || this.inFlight === 0 ? 0 : this.#firstWindows.aloneUntilUs;
  }

  override get storeKey(): string {
    return `lane ${this.name} ${this.role}`;
  }

  /** Whether any budget that applies has windows. */
  get isLimited(): boolean {
    for (let at: Budget | undefined = this; at; at = at.above) if (at.windows.length > 0) return true;
    return false;
  }

  /**
   * What a request uses of every window: its weight and its costs; nothing for a HEAD that is not counted (law L7).
   * Throws a RangeError for a charge that no window could ever grant, which would wait for ever (law L6).
   */
  chargeOf({ method, weight, costs }: EntryRequest): Charge {
    if (method !== undefined && !this.policy.countsHead && method.toUpperCase() === "HEAD") return NO_CHARGE;
    // Nearly every request.
    if (weight === undefined && costs === undefined && this.costLogs.length === 0) return ONE_UNIT;
    const { requests = weight, ...others } = checkedCosts(costs);
    if (weight !== undefined && !Object.is(requests, weight))
      throw new RangeError(`weight ${weight} and costs.requests ${requests} differ: pass one of them`);
    const charge = chargeOf(requests ?? 1, this.#costsOf(others));
    this.checkCharge(charge);
    return charge;
  }

  /** What a request of weight 1 uses that does not name its costs. */
  get usualCharge(): Charge {
    return chargeOf(1, this.costLogs.length === 0 ? undefined : this.#costsOf({}));
  }

  #costsOf(given: Readonly<Record<string, number>>): Costs | undefined {
    const counted = this.costLogs.map(({ unit }) => unit);
    // In shadow mode no request is refused, whatever it names.
    const limited = this.policy.isShadow
      ? []
      : [this, ...budgetsAbove(this)].flatMap(({ policy }) => policy.costs.map(({ unit }) => unit));
    return costsOf(counted, limited, given, this.policy.callCosts, `${this.name} (${this.role})`);
  }

  /**
   * Throws a RangeError for a charge that is invalid, or larger than the limit of a window that applies (law L6). Shadow
   * mode refuses no charge for its size.
   */
  checkCharge(charge: Charge): void {
    if (!Number.isSafeInteger(charge.units) || charge.units < 1)
      throw new RangeError(`weight must be an integer of at least 1, got ${charge.units}`);
    const error = this.policy.isShadow ? undefined : this.impossibleCharge(charge);
    if (error !== undefined) throw error;
  }

  /**
   * The error for a charge that is larger than the limit of a window that applies; undefined if there is none. The share
   * of a process does not count: a larger charge is granted when the store is back.
   */
  impossibleCharge({ units, costs }: Charge): RangeError | undefined {
    for (let at: Budget | undefined = this; at; at = at.above) {
      const { name, policy } = at;
      const full = policy.undivided ?? policy;
      const exceeded = full.windows.findIndex(({ limit }) => units > limit);
      if (exceeded >= 0) return tooLarge(`weight ${units}`, full.labels[exceeded], name);
      for (const { unit, windows: ofUnit, labels } of full.costs) {
        const amount = costs?.get(unit) ?? 0;
        const index = ofUnit.findIndex(({ limit }) => amount > limit);
        if (index >= 0) return tooLarge(`cost ${unit} ${amount}`, labels[index], name);
      }
    }
    return undefined;
  }

  /**
   * Also counts units that it does not limit: a later reload may move them under a limit. Of several holds the latest end
   * counts. A total takes over no hold, because its other roles are not held.
   */
  override absorb(sent: readonly FormerBudget[]): void {
    for (const { costLogs, holdUntilUs = 0 } of sent) {
      this.track(costLogs);
      this.holdUntilUs = Math.max(this.holdUntilUs, holdUntilUs);
    }
    super.absorb(sent);
  }

  /**
   * Counts every unit that a budget above limits, also where this one does not: if a reload moves the key to another
   * total, the used units count there too (law L1).
   */
  trackCosts(): void {
    for (let at = this.above; at; at = at.above) this.track(at.policy.costs);
  }

  track(units: readonly { readonly unit: string }[]): void {
    for (const { unit } of units)
      if (this.costLogs.every(cost => cost.unit !== unit))
        this.costLogs = [...this.costLogs, new CostLog({ unit, rates: [], windows: [], labels: [] })];
  }
}

function tooLarge(shown: string, label: string | undefined, name: string): RangeError {
  return new RangeError(`${shown} is larger than the rate limit ${label} of ${name}: no window can grant it`);
}
