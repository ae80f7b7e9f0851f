import { decidedByText } from "../errors.ts";
import { Listeners } from "../listeners.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import type { Role } from "../policy/roles.ts";
import type { Charge, Costs } from "./charge.ts";
import type { GrantedWait } from "./granted-wait.ts";
import type { LearnedChange } from "./learned-limits.ts";
import type { LimiterEvent } from "./limiter-events.ts";
import type { OrderedChange } from "./ordered-change.ts";
import { isLooserThanBase } from "./ordered-policies.ts";
import type { PaceChange } from "./pace.ts";
import type { Refusal } from "./refusal.ts";
import type { RoleBudget } from "./role-budget.ts";

const EVENT_OF = { multiplier: "aimd_adjust", guard_ms: "guard_adjust", shape: "shape_adjust" } as const;

/** Emits the events of the limiter. The most frequent one, `ratelimit.acquire`, is built only if a listener wants it. */
export class LimiterEmitter extends Listeners<LimiterEvent> {
  /** The labels of the last grant, and their text: most grants have the rates of the one before. */
  #lastLabels: readonly string[] = [];
  #lastRates = "";

  /** `mayWait`: the call was allowed to wait. */
  granted(roleBudget: RoleBudget, charge: Charge, wait: GrantedWait, mayWait: boolean): void {
    const { name: host, role } = roleBudget;
    if (charge.units === 0) this.emit({ event_type: "rate_head_skipped", host, role });
    if (!this.hasListener("ratelimit.acquire")) return;
    const { waitedMs, decidedBy } = wait;
    this.#acquire(
      roleBudget,
      charge,
      mayWait ? "block" : "fail",
      waitedMs,
      "granted",
      decidedBy && decidedByText(decidedBy),
    );
  }

  /** `waitedMs` for a request that was queued first; undefined if it is refused on arrival. */
  refused(roleBudget: RoleBudget, charge: Charge, waitedMs: number | undefined): void {
    if (!this.hasListener("ratelimit.acquire")) return;
    this.#acquire(roleBudget, charge, waitedMs === undefined ? "fail" : "block", waitedMs ?? 0, "refused");
  }

  aborted(roleBudget: RoleBudget, charge: Charge, waitedMs: number): void {
    if (this.hasListener("ratelimit.acquire")) this.#acquire(roleBudget, charge, "block", waitedMs, "aborted");
  }

  held(key: string, role: Role, ms: number): void {
    this.emit({ event_type: "ratelimit.cooldown", key, role, seconds: ms / 1000 });
  }

  paced({ name: host, role }: RoleBudget, changes: readonly PaceChange[]): void {
    for (const { what, ...change } of changes) this.emit({ event_type: EVENT_OF[what], host, role, ...change });
  }

  learned({ name: key, role }: RoleBudget, changes: readonly LearnedChange[]): void {
    for (const change of changes) this.emit({ event_type: "limit_learned", key, role, ...change });
  }

  /** `seconds` is 0 if an order has ended. */
  ordered(
    { name: key, part: role, old, now }: OrderedChange,
    { seconds, reason, by }: { readonly seconds: number; readonly reason: string; readonly by: string },
  ): void {
    const hasOtherCap = old.maxConcurrent !== now.maxConcurrent;
    const text = ({ labels, maxConcurrent }: BudgetPolicy) => {
      const cap = Number.isFinite(maxConcurrent) ? maxConcurrent : "none";
      return `${labels.join("+") || "none"}${hasOtherCap ? `, max_concurrent ${cap}` : ""}`;
    };
    const is_looser = isLooserThanBase(now);
    this.emit({
      ...{ event_type: "limit_ordered", key, role, old: text(old), new: text(now) },
      ...{ seconds, reason, by, is_looser },
    });
  }

  storeAway(processes: number, mode: "share" | "wait" | "refuse", { message }: Error): void {
    this.emit({ event_type: "store_away", processes, mode, message });
  }

  storeBack(awayMs: number): void {
    this.emit({ event_type: "store_back", away_ms: awayMs });
  }

  shadowed(
    { name: key, role }: RoleBudget,
    would: "wait" | "refuse",
    { retryAfterMs, constraint }: Refusal,
    decidedBy: string | undefined,
  ): void {
    const binding = `${constraint.limit} of ${constraint.owner}`;
    const decided = decidedBy === undefined ? undefined : { decided_by: decidedBy };
    this.emit({
      event_type: "ratelimit.shadow",
      key,
      role,
      would,
      wait_ms: retryAfterMs,
      constraint: binding,
      ...decided,
    });
  }

  settled({ name: key, role }: RoleBudget, unit: string, charged: number, used: number): void {
    this.emit({ event_type: "ratelimit.settle", key, role, unit, charged, used });
  }

  overruled({ name: host, role }: RoleBudget): void {
    this.emit({ event_type: "limit_overruled", host, role });
  }

  #acquire(
    { name: key, role, policy }: RoleBudget,
    { units: weight, costs }: Charge,
    mode: "block" | "fail",
    blocked_ms: number,
    outcome: "granted" | "refused" | "aborted",
    decided_by?: string,
  ): void {
    const rates = this.#ratesText(policy.labels);
    const event = { event_type: "ratelimit.acquire", key, role, rates, weight, mode, blocked_ms, outcome } as const;
    // Nearly every event ends here: copying the object would take longer than emitting it.
    if (costs === undefined && decided_by === undefined) {
      this.emit(event);
      return;
    }
    const costsUsed = costs === undefined ? undefined : { costs: costsText(costs) };
    this.emit({ ...event, ...costsUsed, ...(decided_by === undefined ? undefined : { decided_by }) });
  }

  #ratesText(labels: readonly string[]): string {
    if (labels !== this.#lastLabels) {
      this.#lastLabels = labels;
      this.#lastRates = labels.join("+");
    }
    return this.#lastRates;
  }
}

function costsText(costs: Costs): string {
  return Array.from(costs, ([unit, amount]) => `${unit} ${amount}`).join(",");
}
