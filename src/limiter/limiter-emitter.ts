import { Listeners } from "../listeners.ts";
import type { Lane } from "./budget.ts";
import type { Refusal } from "./grant.ts";
import type { LearnedChange } from "./learned-limits.ts";
import type { GateEvent } from "./limiter-events.ts";
import type { PaceChange } from "./pace.ts";

const EVENT_OF = { multiplier: "aimd_adjust", guard_ms: "guard_adjust", shape: "shape_adjust" } as const;

/** Turns what happens at the gate into events. Nobody listens most of the time: then nothing is built. */
export class GateTeller extends Listeners<GateEvent> {
  /** `isPatient`: it would have waited. */
  granted(lane: Lane, weight: number, waitedMs: number, isPatient: boolean): void {
    if (this.isEmpty) return;
    const { name: host, role } = lane;
    if (weight === 0) this.tell({ event_type: "rate_head_skipped", host, role });
    this.#acquire(lane, weight, isPatient ? "block" : "fail", waitedMs, "granted");
  }

  /** `waitedMs` for somebody who was admitted first; undefined for one refused on arrival. */
  refused(lane: Lane, weight: number, waitedMs: number | undefined): void {
    if (this.isEmpty) return;
    this.#acquire(lane, weight, waitedMs === undefined ? "fail" : "block", waitedMs ?? 0, "refused");
  }

  aborted(lane: Lane, weight: number, waitedMs: number): void {
    if (!this.isEmpty) this.#acquire(lane, weight, "block", waitedMs, "aborted");
  }

  held({ name: key, role }: Lane, ms: number): void {
    this.tell({ event_type: "ratelimit.cooldown", key, role, seconds: ms / 1000 });
  }

  paced({ name: host, role }: Lane, changes: readonly PaceChange[]): void {
    for (const { what, ...change } of changes) this.tell({ event_type: EVENT_OF[what], host, role, ...change });
  }

  learned({ name: host, role }: Lane, changes: readonly LearnedChange[]): void {
    for (const change of changes) this.tell({ event_type: "limit_learned", host, role, ...change });
  }

  store(away: { readonly processes: number; readonly error: Error } | undefined): void {
    if (away === undefined) this.tell({ event_type: "store_back" });
    else this.tell({ event_type: "store_away", processes: away.processes, message: away.error.message });
  }

  shadowed({ name: key, role }: Lane, would: "wait" | "refuse", { retryAfterMs, constraint }: Refusal): void {
    const binding = `${constraint.limit} of ${constraint.owner}`;
    this.tell({ event_type: "ratelimit.shadow", key, role, would, wait_ms: retryAfterMs, constraint: binding });
  }

  overruled({ name: host, role }: Lane): void {
    this.tell({ event_type: "limit_overruled", host, role });
  }

  #acquire(
    { name: key, role, policy }: Lane,
    weight: number,
    mode: "block" | "fail",
    blocked_ms: number,
    outcome: "granted" | "refused" | "aborted",
  ): void {
    const rates = policy.labels.join("+");
    this.tell({ event_type: "ratelimit.acquire", key, role, rates, weight, mode, blocked_ms, outcome });
  }
}
