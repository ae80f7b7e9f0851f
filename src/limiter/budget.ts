import type { AimdPolicy } from "../core/limits/aimd.ts";
import { type Window, WindowLog } from "../core/limits/window-log.ts";
import type { Constraint } from "../errors.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import type { Pace } from "./pace.ts";
import type { SentUnits } from "./sent-history.ts";

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
  inFlight = 0;
  /** No request is granted before this: a cooldown, or the reset time that the server announced for a used-up quota. */
  holdUntilUs = 0;
  /** Learned pace of this server. Undefined until something was learned. */
  pace: Pace | undefined = undefined;

  constructor(name: string, policy: BudgetPolicy, above: Budget | undefined) {
    this.name = name;
    this.policy = policy;
    this.above = above;
  }

  /** The key of this budget in a shared store, which processes of all versions must agree on. */
  get storeKey(): string {
    return `total ${this.name}`;
  }

  get windows(): readonly Window[] {
    return this.pace === undefined ? this.policy.windows : this.pace.windows;
  }

  get spacingUs(): number {
    return this.pace === undefined ? this.policy.spacingUs : this.pace.spacingUs;
  }

  /** Applies another policy. Requests already sent still count. */
  reload(policy: BudgetPolicy, aimd: AimdPolicy): void {
    const old = this.windows;
    this.policy = policy;
    this.pace?.reload(policy, aimd);
    this.log.replaceWindows(old, this.windows);
  }

  /** Counts what other budgets have sent as sent by this one too. */
  absorb(sent: readonly SentUnits[]): void {
    const { windows, log } = this;
    this.log = WindowLog.merged(windows, [{ log, windows }, ...sent]);
    this.log.pending = log.pending;
  }

  /** When windows and hold admit `units` more; now or earlier means now. */
  earliestUs(units: number, nowUs: number): number {
    if (units === 0) return this.holdUntilUs;
    return Math.max(this.holdUntilUs, this.log.earliestUs(this.windows, this.spacingUs, units, nowUs));
  }

  /** As `earliestUs`, but NEEDS_SLOT while every slot is taken. */
  readyUs(units: number, nowUs: number): number {
    return this.hasSlot ? this.earliestUs(units, nowUs) : NEEDS_SLOT;
  }

  /** Whether this budget and those above it admit `units` now. */
  hasCapacity(units: number, nowUs: number): boolean {
    for (let at: Budget | undefined = this; at; at = at.above) if (at.readyUs(units, nowUs) > nowUs) return false;
    return true;
  }

  get hasSlot(): boolean {
    return this.inFlight < this.policy.maxConcurrent;
  }

  /** The limit that delays a request longest: a window, the spacing or a cooldown; if none does, the slots. */
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
    if (this.holdUntilUs > Math.max(nowUs, untilUs)) return { kind: "cooldown", owner, limit: "cooldown" };
    if (spacingUs > 0 && log.earliestUs([], spacingUs, units, nowUs) > untilUs) {
      return { kind: "spacing", owner, limit: `even spacing of ${policy.labels.join("+")}` };
    }
    const label = policy.labels[binding];
    return label === undefined ? this.slotConstraint("max_concurrent") : { kind: "window", owner, limit: label };
  }

  slotConstraint(key: "max_concurrent" | "max_inflight"): Constraint {
    return { kind: "concurrency", owner: this.name, limit: `${key} ${this.policy.maxConcurrent}` };
  }
}

/** When every budget that applies has capacity for `units`, whatever waits for it. */
export function freeUs(budget: Budget, units: number, nowUs: number): number {
  let us = nowUs;
  for (let at: Budget | undefined = budget; at; at = at.above) us = Math.max(us, at.earliestUs(units, nowUs));
  return us;
}
