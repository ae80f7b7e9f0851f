import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { Constraint } from "../errors.ts";
import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import type { Role } from "../policy/roles.ts";
import { Budget } from "./budget.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { LearnedLimits } from "./learned-limits.ts";

/** The units that a role budget has leased from the shared store. */
export class UnitLease {
  /** Leased and not yet part of a grant. */
  unusedUnits = 0;
  /** Leased and neither written nor returned: the unused units, and those of grants. */
  leasedUnits = 0;
  leasedUs = 0;
  isRequesting = false;
  /** The store has no units for this budget before this instant. */
  notBeforeUs = 0;
  /** Store keys of the budgets that the units were leased from. */
  keys: readonly string[] = [];
  /** True once `limit_overruled` was emitted for a stricter policy of another process. */
  isOverruled = false;

  get isIdle(): boolean {
    return this.leasedUnits === 0 && !this.isRequesting;
  }
}

/** The budget of one role at one host or service, the first that a request is charged to. */
export class RoleBudget extends Budget {
  /** The limits in force: the configured ones, tightened by what was learned. */
  declare policy: RoleBudgetPolicy;
  readonly role: Role;
  /** Limits announced by the server that are tighter than the policy. Undefined until there are any. */
  learned: LearnedLimits | undefined = undefined;
  /** False once a reload changed the rates: requests sent before did not keep to the present ones. */
  hasUnchangedRates = true;
  /** Forgotten, or removed by a reload. The object only serves requests that are still in flight. */
  isDetached = false;
  /** Units leased from a shared store. Undefined without a store, or before the first request to it. */
  unitLease: UnitLease | undefined = undefined;
  /** Requests queued for this budget. */
  waiting = 0;
  acquired = 0;
  refused = 0;
  headSkipped = 0;
  /** Which kind of request gets the next free slot. It alternates, so that neither kind starves the other. */
  servesUncountedFirst = false;

  constructor(name: string, role: Role, policy: RoleBudgetPolicy, above: Budget | undefined) {
    super(name, policy, above);
    this.role = role;
  }

  /** Also waits until the store may have units again. */
  override earliestUs(units: number, nowUs: number): number {
    const ownUs = super.earliestUs(units, nowUs);
    const { unitLease } = this;
    return unitLease === undefined || units <= unitLease.unusedUnits ? ownUs : Math.max(ownUs, unitLease.notBeforeUs);
  }

  override constraint(units: number, nowUs: number): Constraint {
    const sharedUs = this.unitLease?.notBeforeUs ?? 0;
    if (units === 0 || sharedUs <= nowUs || super.earliestUs(units, nowUs) >= sharedUs)
      return super.constraint(units, nowUs);
    return { kind: "window", owner: this.name, limit: `${this.policy.labels.join("+")} (shared by all processes)` };
  }

  /** Whether no request waits for it and a new budget would behave the same (law L11). */
  isForgettable(nowUs: number): boolean {
    const { pace, learned, unitLease } = this;
    return (
      this.waiting === 0 &&
      this.inFlight === 0 &&
      this.holdUntilUs <= nowUs &&
      (pace === undefined || pace.isNeutral(nowUs)) &&
      (learned === undefined || learned.isLapsed(nowUs)) &&
      this.log.isExpired(this.windows, this.spacingUs, nowUs) &&
      (unitLease === undefined || (unitLease.isIdle && unitLease.notBeforeUs <= nowUs))
    );
  }

  /** The configured limits, without learned ones. */
  get configured(): RoleBudgetPolicy {
    return this.learned?.base ?? this.policy;
  }

  override reload(policy: RoleBudgetPolicy, aimd: AimdPolicy): void {
    if (policy.labels.join() !== this.configured.labels.join()) this.hasUnchangedRates = false;
    super.reload(this.learned?.overlay(policy) ?? policy, aimd);
  }

  /** Applies learned limits on top of the policy. */
  learn(learned: LearnedLimits, aimd: AimdPolicy): void {
    this.learned = learned;
    this.reload(learned.base, aimd);
  }

  /** Drops learned limits. Only for a budget that may be forgotten: it then behaves like a new one. */
  unlearn(aimd: AimdPolicy): void {
    const { configured } = this;
    this.learned = undefined;
    this.hasUnchangedRates = true;
    super.reload(configured, aimd);
  }

  override get storeKey(): string {
    return `lane ${this.name} ${this.role}`;
  }

  /** Whether any budget that applies has windows. */
  get isLimited(): boolean {
    for (let at: Budget | undefined = this; at; at = at.above) if (at.windows.length > 0) return true;
    return false;
  }

  /** Units that a request uses of every window: its weight, or 0 for a HEAD that is not counted (law L7). */
  unitsOf({ method, weight = 1 }: EntryRequest): number {
    if (method !== undefined && !this.policy.countsHead && method.toUpperCase() === "HEAD") return 0;
    if (weight !== 1) this.checkWeight(weight);
    return weight;
  }

  /** Throws a RangeError for a weight that no window could ever grant, which would wait for ever (law L6). */
  checkWeight(weight: number): void {
    if (!Number.isSafeInteger(weight) || weight < 1)
      throw new RangeError(`weight must be an integer of at least 1, got ${weight}`);
    const error = this.impossibleWeight(weight);
    if (error !== undefined) throw error;
  }

  /** The error for a weight that is larger than the limit of a window that applies; undefined if there is none. */
  impossibleWeight(weight: number): RangeError | undefined {
    for (let at: Budget | undefined = this; at; at = at.above) {
      for (const [index, { limit }] of at.windows.entries()) {
        if (weight > limit)
          return new RangeError(
            `weight ${weight} is larger than the rate limit ${at.policy.labels[index]} of ${at.name}: no window can grant it`,
          );
      }
    }
    return undefined;
  }
}
