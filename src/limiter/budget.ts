import type { AimdPolicy } from "../core/limits/aimd.ts";
import { type Window, WindowLog } from "../core/limits/window-log.ts";
import type { Constraint } from "../errors.ts";
import type { BudgetPolicy, RoleBudgetPolicy } from "../policy/limits.ts";
import type { Role } from "../policy/roles.ts";
import type { LearnedLimits } from "./learned-limits.ts";
import type { Pace } from "./pace.ts";
import type { UnitLease } from "./unit-lease.ts";

/** Ready when a slot is free, and nobody can say when that is. */
export const NEEDS_SLOT = Number.POSITIVE_INFINITY;

/**
 * One budget that requests draw on: windows, slots, and a hold.
 * It decides and counts; who waits for it, and in which order, is the turnstile's business.
 */
export class Budget {
  readonly name: string;
  policy: BudgetPolicy;
  /** The wider budget that every request of this one draws on too. */
  above: Budget | undefined;
  readonly log = new WindowLog();
  inFlight = 0;
  /** Nothing is sent before this: a cooldown, or a server's word that its quota is spent. */
  holdUntilUs = 0;
  /** What was learned about the pace this server wants. Absent until there is something. */
  pace: Pace | undefined = undefined;

  constructor(name: string, policy: BudgetPolicy, above: Budget | undefined) {
    this.name = name;
    this.policy = policy;
    this.above = above;
  }

  get windows(): readonly Window[] {
    return this.pace === undefined ? this.policy.windows : this.pace.windows;
  }

  get spacingUs(): number {
    return this.pace === undefined ? this.policy.spacingUs : this.pace.spacingUs;
  }

  /** Goes on under another policy; what was sent still counts. */
  reload(policy: BudgetPolicy, aimd: AimdPolicy): void {
    const old = this.windows;
    this.policy = policy;
    this.pace?.reload(policy, aimd);
    this.log.replaceWindows(old, this.windows);
  }

  /** When `units` more may go as far as windows and holds are concerned; now or earlier means now. */
  earliestUs(units: number, nowUs: number): number {
    if (units === 0) return this.holdUntilUs;
    return Math.max(this.holdUntilUs, this.log.earliestUs(this.windows, this.spacingUs, units, nowUs));
  }

  /** The same, and NEEDS_SLOT while every slot is taken. */
  readyUs(units: number, nowUs: number): number {
    return this.hasSlot ? this.earliestUs(units, nowUs) : NEEDS_SLOT;
  }

  get hasSlot(): boolean {
    return this.inFlight < this.policy.maxConcurrent;
  }

  /** A lower bound for the last of `units` behind `ahead` others, without knowing when those will go. */
  estimateUs(ahead: number, units: number, nowUs: number): number {
    const { log, windows, spacingUs } = this;
    const known = log.written + log.pending;
    let earliestUs = this.holdUntilUs;
    if (spacingUs > 0)
      earliestUs = Math.max(earliestUs, nowUs, log.earliestUs([], spacingUs, units, nowUs)) + ahead * spacingUs;
    for (let index = 0; index < windows.length; index += 1) {
      const window = windows[index] as Window;
      let unit = known + ahead + units - window.limit;
      let rounds = 1;
      if (unit > known) {
        // Each full window of those ahead takes at least one span more.
        const more = Math.ceil((unit - known) / window.limit);
        unit -= more * window.limit;
        rounds += more;
      }
      if (unit > 0) earliestUs = Math.max(earliestUs, log.stampUs(index, window, unit, nowUs) + rounds * window.spanUs);
      else if (rounds > 1) earliestUs = Math.max(earliestUs, nowUs + (rounds - 1) * window.spanUs);
    }
    return earliestUs;
  }

  /** How many units the windows would let go at once, now. */
  freeUnits(nowUs: number): number {
    if (this.holdUntilUs > nowUs) return 0;
    return Math.min(...this.windows.map((window, index) => window.limit - this.log.usedUnits(index, window, nowUs)));
  }

  /** Names what holds a request back longest: a window, the spacing or a cooldown; or else the slots. */
  constraint(units: number, nowUs: number): Constraint {
    const { name: owner, log, windows, spacingUs, policy } = this;
    let untilUs = Number.NEGATIVE_INFINITY;
    let binding = -1;
    for (let index = 0; index < windows.length; index += 1) {
      const freeUs = log.windowFreeUs(index, windows[index] as Window, units, nowUs);
      if (binding >= 0 && freeUs <= untilUs) continue;
      binding = index;
      untilUs = freeUs;
    }
    if (this.holdUntilUs > Math.max(nowUs, untilUs)) return { kind: "cooldown", owner, limit: "a cooldown" };
    if (spacingUs > 0 && log.earliestUs([], spacingUs, units, nowUs) > untilUs) {
      return { kind: "spacing", owner, limit: `the even spacing of ${policy.labels.join("+")}` };
    }
    const label = policy.labels[binding];
    return label === undefined ? this.slotConstraint("max_concurrent") : { kind: "window", owner, limit: label };
  }

  slotConstraint(key: "max_concurrent" | "max_inflight"): Constraint {
    return { kind: "concurrency", owner: this.name, limit: `${key} ${this.policy.maxConcurrent}` };
  }
}

/** The budget of one role at one host or group: where requests arrive. */
export class RoleBudget extends Budget {
  /** With what was learned on top: what holds now. */
  declare policy: RoleBudgetPolicy;
  readonly role: Role;
  /** What its server has announced that is tighter than the policy. Absent until there is something. */
  learned: LearnedLimits | undefined = undefined;
  /** False once its rates were changed: the policy of today says nothing about what was sent before. */
  hasUnchangedRates = true;
  /** Forgotten, or dissolved by a reload; it lives on only for what is still in flight. */
  isDetached = false;
  /** What it was given by a store that processes share. Absent where none is, or nothing was asked yet. */
  unitLease: UnitLease | undefined = undefined;
  acquired = 0;
  refused = 0;
  headSkipped = 0;
  /** Who goes first when a slot is freed; they take turns, so that neither kind can keep the other out. */
  servesUncountedFirst = false;

  constructor(name: string, role: Role, policy: RoleBudgetPolicy, above: Budget | undefined) {
    super(name, policy, above);
    this.role = role;
  }

  /** Not before the store has something for it, either. */
  override earliestUs(units: number, nowUs: number): number {
    const ownUs = super.earliestUs(units, nowUs);
    const { unitLease } = this;
    return unitLease === undefined || units <= unitLease.units ? ownUs : Math.max(ownUs, unitLease.notBeforeUs);
  }

  override constraint(units: number, nowUs: number): Constraint {
    const sharedUs = this.unitLease?.notBeforeUs ?? 0;
    if (units === 0 || sharedUs <= nowUs || super.earliestUs(units, nowUs) >= sharedUs)
      return super.constraint(units, nowUs);
    return { kind: "window", owner: this.name, limit: `${this.policy.labels.join("+")} of all processes together` };
  }

  /** As configured, without what was learned. */
  get configured(): RoleBudgetPolicy {
    return this.learned?.base ?? this.policy;
  }

  override reload(policy: RoleBudgetPolicy, aimd: AimdPolicy): void {
    if (policy.labels.join() !== this.configured.labels.join()) this.hasUnchangedRates = false;
    super.reload(this.learned?.overlay(policy) ?? policy, aimd);
  }

  /** Goes on with what was learned, or was learned anew, on top of the policy. */
  learn(learned: LearnedLimits, aimd: AimdPolicy): void {
    this.learned = learned;
    this.reload(learned.base, aimd);
  }

  /** Goes by its policy alone again, as a fresh one would. Only for one that may be forgotten. */
  unlearn(aimd: AimdPolicy): void {
    const { configured } = this;
    this.learned = undefined;
    this.hasUnchangedRates = true;
    super.reload(configured, aimd);
  }
}
