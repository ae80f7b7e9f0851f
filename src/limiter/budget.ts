import type { AimdPolicy } from "../core/limits/aimd.ts";
import { heavySpacingUs } from "../core/limits/guard.ts";
import { formatRates } from "../core/limits/rate.ts";
import { type Window, WindowLog } from "../core/limits/window-log.ts";
import type { Constraint, OrderedRate } from "../errors.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import { bindingLimit, type LimitTimes } from "./binding-limit.ts";
import { type Charge, type Costs, ONE_UNIT } from "./charge.ts";
import { type CostLog, NO_COST_LOGS, reloadedCostLogs } from "./cost-log.ts";
import { shortestWindow } from "./first-windows.ts";
import type { Pace } from "./pace.ts";
import { absorbed, type SentUnits } from "./sent-history.ts";
import { assumedUnits, knownUse, type SharedUse, USE_WITHIN_US } from "./shared-use.ts";

/** `readyUs` of a budget without a free slot: the time of the next release is unknown. */
export const NEEDS_SLOT = Number.POSITIVE_INFINITY;

/**
 * Windows, concurrency slots and a hold that requests are charged to. It decides and counts; the `Scheduler` does the
 * queueing.
 */
export class Budget {
  readonly name: string;
  policy: BudgetPolicy;
  /** The wider budget that every request of this one is charged to as well: a host's or a service's `total`. */
  above: Budget | undefined;
  log = new WindowLog();
  /** What was used of other units than requests. */
  costLogs: readonly CostLog[];
  inFlight = 0;
  /**
   * No request is granted before this: a cooldown, the reset time that the server announced for a used-up quota, or
   * `reportedUntilUs`.
   */
  holdUntilUs = 0;
  /** Until then the processes of a store report what they sent before a reload that added requests to this budget. */
  reportedUntilUs = 0;
  /** What the shared store last said about this budget. Undefined without a store, or before its first reply. */
  sharedUse: SharedUse | undefined = undefined;
  /** When the store last granted units of this budget, or said that it has none free. */
  sharedContactUs = Number.NEGATIVE_INFINITY;
  /** The store has fewer than `fullForUnits` units of this budget before this instant; 0 if that is not known. */
  fullUntilUs = 0;
  fullForUnits = 1;
  /** Role budgets below it with queued requests. */
  waitingBelow = 0;
  /** Units that this process has requested from the store, which has not replied yet. */
  requestedUnits = 0;
  /** Learned pace of this server. Undefined until something was learned. */
  pace: Pace | undefined = undefined;

  constructor(name: string, policy: BudgetPolicy, above: Budget | undefined) {
    this.name = name;
    this.policy = policy;
    this.above = above;
    this.costLogs = policy.costs.length === 0 ? NO_COST_LOGS : reloadedCostLogs([], policy.costs, false);
  }

  /** The key of this budget in a shared store, which processes of all versions must agree on. */
  get storeKey(): string {
    return `total ${this.name}`;
  }

  get windows(): readonly Window[] {
    return this.pace === undefined ? this.policy.windows : this.pace.windows;
  }

  /** The windows that all processes share, undivided: the claim of this process in the store. */
  get claimedWindows(): readonly Window[] {
    return this.policy.undivided?.windows ?? this.windows;
  }

  get spacingUs(): number {
    return this.pace === undefined ? this.policy.spacingUs : this.pace.spacingUs;
  }

  /** The even spacing between a send of `units` and one of `lastUnits`: that of the heavier one. */
  spacingOfUs(units: number, lastUnits: number): number {
    const { spacingUs, policy } = this;
    const heavier = Math.max(units, lastUnits);
    // Nearly every request.
    if (spacingUs === 0 || heavier <= 1) return spacingUs;
    const { windows } = policy.undivided ?? policy;
    return heavySpacingUs(spacingUs, shortestWindow(windows)?.limit ?? 1, heavier);
  }

  /** Applies another policy. Requests already sent still count. */
  reload(policy: BudgetPolicy, aimd: AimdPolicy): void {
    const old = this.windows;
    // The reply of the store has a number for each window, so it does not fit other windows.
    if (this.sharedUse !== undefined && !hasSameLengths(this.policy, policy)) this.sharedUse = undefined;
    this.policy = policy;
    // The store had no units under the former limits. That says nothing about the new ones.
    this.fullUntilUs = 0;
    this.pace?.reload(policy, aimd);
    this.log.replaceWindows(old, this.windows);
    this.costLogs = reloadedCostLogs(this.costLogs, policy.costs, this.keepsUnlimitedCosts);
  }

  /**
   * Whether it keeps counting a unit whose limit is removed. If a later policy limits the unit again, the totals above
   * take over these counts.
   */
  get keepsUnlimitedCosts(): boolean {
    return false;
  }

  /** Counts the units that other budgets have sent as sent by this budget too. */
  absorb(sent: readonly SentUnits[]): void {
    this.log = absorbed(this, sent);
    for (const cost of this.costLogs) cost.absorb(sent);
  }

  /**
   * When windows and hold admit the request; now or earlier means now. A request that needs more than the share of this
   * process waits for the store, not for a window.
   */
  earliestUs(charge: Charge, nowUs: number): number {
    const { units, costs } = charge;
    if (units === 0 || this.exceedsOwnShare(charge)) return this.holdUntilUs;
    const spacingUs = this.spacingOfUs(units, this.log.lastUnits);
    const readyUs = Math.max(this.holdUntilUs, this.log.earliestUs(this.windows, spacingUs, units, nowUs));
    return costs === undefined ? readyUs : Math.max(readyUs, this.#costsEarliestUs(costs, nowUs));
  }

  /** As `earliestUs`, but NEEDS_SLOT while every slot is taken. */
  readyUs(charge: Charge, nowUs: number): number {
    return this.hasSlot ? this.earliestUs(charge, nowUs) : NEEDS_SLOT;
  }

  /** The request is granted and not yet written: it counts as written now. */
  reserve({ units, costs }: Charge): void {
    this.log.reserve(units);
    if (costs !== undefined) this.#eachCost(costs, ({ log }, amount) => log.reserve(amount));
  }

  /** A granted request is not sent. */
  giveBack({ units, costs }: Charge): void {
    this.log.giveBack(units);
    if (costs !== undefined) this.#eachCost(costs, (cost, amount) => cost.giveBack(amount));
  }

  /** The request is written now, and was not reserved. */
  write({ units, costs }: Charge, nowUs: number): void {
    this.log.write(this.windows, units, nowUs);
    if (costs !== undefined) this.#eachCost(costs, ({ log, windows }, amount) => log.write(windows, amount, nowUs));
  }

  /** The reserved request is written now. */
  writeReserved({ units, costs }: Charge, nowUs: number): void {
    this.log.writeReserved(this.windows, units, nowUs);
    if (costs !== undefined) this.#eachCost(costs, (cost, amount) => cost.writeReserved(amount, nowUs));
  }

  /** A request that was written at `stampedUs` is not sent after all. */
  refund({ units, costs }: Charge, stampedUs: number, nowUs: number): void {
    // A unit that no window counts any more may be forgotten: then the log has only units of other requests.
    const isCounted = (windows: readonly Window[]) => windows.some(({ spanUs }) => stampedUs > nowUs - spanUs);
    if (isCounted(this.windows)) this.log.refund(this.windows, units, stampedUs);
    if (costs !== undefined)
      this.#eachCost(costs, ({ log, windows }, amount) => {
        if (isCounted(windows)) log.refund(windows, amount, stampedUs);
      });
  }

  /** A request used `more` of a unit than it was charged, or less; `stampedUs` is undefined if it is not written yet. */
  settle(unit: string, more: number, stampedUs: number | undefined, nowUs: number): void {
    this.costLogs.find(cost => cost.unit === unit)?.settle(more, stampedUs, nowUs);
  }

  /** Whether requests are granted and not yet written. */
  get hasPending(): boolean {
    return this.log.pending > 0;
  }

  #costsEarliestUs(costs: Costs, nowUs: number): number {
    let readyUs = 0;
    for (const cost of this.costLogs) readyUs = Math.max(readyUs, cost.earliestUs(costs.get(cost.unit) ?? 0, nowUs));
    return readyUs;
  }

  #eachCost(costs: Costs, apply: (cost: CostLog, amount: number) => void): void {
    for (const cost of this.costLogs) {
      const amount = costs.get(cost.unit) ?? 0;
      if (amount !== 0) apply(cost, amount);
    }
  }

  /**
   * For a store that is lost: the units that this process must count as used in its share of the limits, because other
   * processes may have used them. Call it before the limits are divided by `processes`.
   */
  unknownUnits(processes: number, nowUs: number): number {
    const { windows, log } = this;
    const own = windows.map((window, index) => log.usedUnits(index, window, nowUs));
    return assumedUnits(windows, knownUse(windows, this.sharedUse, nowUs), own, processes);
  }

  /**
   * Counts units of other processes as written when the store was lost, or a moment later. Without a share nothing is
   * sent, and later the store decides again.
   */
  countUnknown(units: number, lostUs: number): void {
    if (units > 0 && !this.exceedsOwnShare(ONE_UNIT)) this.log.write(this.windows, units, lostUs + USE_WITHIN_US);
  }

  /**
   * Whether the request needs more than the share of this process. If each process sent such a request, all of them
   * together could exceed the limit, so it waits until the full limits apply again (law S4).
   */
  exceedsOwnShare({ units, costs }: Charge): boolean {
    const { undivided, processes = 1 } = this.policy;
    if (undivided === undefined || units === 0) return false;
    const exceeds = (amount: number, windows: readonly Window[]) =>
      windows.some(({ limit }) => amount * processes > limit);
    return (
      exceeds(units, undivided.windows) ||
      undivided.costs.some(({ unit, windows }) => exceeds(costs?.get(unit) ?? 0, windows))
    );
  }

  /** The constraint of a request that waits because the shared store does not answer; undefined if it does not. */
  storeConstraint(charge: Charge): Constraint | undefined {
    return this.exceedsOwnShare(charge) ? storeAwayConstraint(this.name) : undefined;
  }

  /** The order of an operator that has changed its limits; undefined if there is none. */
  get order(): OrderedRate | undefined {
    const [first] = this.policy.ordered?.orders ?? [];
    if (first === undefined) return undefined;
    const { rates, maxConcurrent, reason, by } = first;
    return { rates: formatRates(rates), ...(maxConcurrent !== undefined && { maxConcurrent }), reason, by };
  }

  /** Whether nothing is in flight, and a new budget would behave the same (law L11). Says nothing about its pace. */
  isExpired(nowUs: number): boolean {
    return (
      this.inFlight === 0 &&
      this.holdUntilUs <= nowUs &&
      this.log.isExpired(this.windows, this.spacingUs, nowUs) &&
      this.costLogs.every(cost => cost.isExpired(nowUs))
    );
  }

  get hasSlot(): boolean {
    return this.inFlight < this.policy.maxConcurrent;
  }

  /** The limit that delays a request longest: a window, the spacing or a cooldown; if none does, the slots. */
  constraint(charge: Charge, nowUs: number): Constraint {
    return bindingLimit(this, charge, new BudgetTimes(this, nowUs));
  }

  /** When the store may have the units, as far as it has said; 0 if no store is asked. */
  leaseUs(units: number): number {
    return units < this.fullForUnits ? 0 : this.fullUntilUs;
  }

  /** Whether all units that may be free are requested from the store: its reply decides about more. */
  isRequestedOut(units: number, nowUs: number): boolean {
    if (this.requestedUnits === 0 || this.windows.length === 0) return false;
    return this.spacingUs > 0 || this.log.earliestUs(this.windows, 0, this.requestedUnits + units, nowUs) > nowUs;
  }

  slotConstraint(key: "max_concurrent" | "max_inflight"): Constraint {
    return { kind: "concurrency", owner: this.name, limit: `${key} ${this.policy.maxConcurrent}` };
  }
}

/** When the limits of a budget admit a request. Waiting requests are ignored. */
class BudgetTimes implements LimitTimes {
  readonly #budget: Budget;
  readonly nowUs: number;

  constructor(budget: Budget, nowUs: number) {
    this.#budget = budget;
    this.nowUs = nowUs;
  }

  windowUs(index: number, units: number): number {
    const { log, windows } = this.#budget;
    return log.windowFreeUs(index, windows[index] as Window, units, this.nowUs);
  }

  spacedUs(units: number): number {
    const { log } = this.#budget;
    return log.earliestUs([], this.#budget.spacingOfUs(units, log.lastUnits), units, this.nowUs);
  }

  leaseUs(units: number): number {
    return this.#budget.leaseUs(units);
  }

  costWindowUs({ log, windows }: CostLog, index: number, amount: number): number {
    return log.windowFreeUs(index, windows[index] as Window, amount, this.nowUs);
  }

  costLeaseUs(cost: CostLog, amount: number): number {
    return cost.leaseUs(amount);
  }
}

/** Whether two policies claim windows of the same lengths in the store. */
function hasSameLengths(a: BudgetPolicy, b: BudgetPolicy): boolean {
  const [ours, theirs] = [a.undivided ?? a, b.undivided ?? b].map(({ rates }) => rates.map(({ windowUs }) => windowUs));
  return ours?.join() === theirs?.join();
}

/** The constraint of a request that the shared store delays. */
export function storeAwayConstraint(owner: string): Constraint {
  return { kind: "store", owner, limit: "when_store_away" };
}

/** The totals that requests of a budget are charged to as well, the lowest first. */
export function budgetsAbove(budget: Budget): readonly Budget[] {
  const above: Budget[] = [];
  for (let at = budget.above; at; at = at.above) above.push(at);
  return above;
}
