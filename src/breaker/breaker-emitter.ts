import type { CallResult } from "../core/breaker/call-result.ts";
import type { Circuit } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import { Listeners } from "../listeners.ts";
import type { Role } from "../policy/roles.ts";
import type { ChangeOrigin } from "./breaker-change.ts";
import { type BreakerEvent, type CircuitState, stateName } from "./breaker-events.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { Denial } from "./denial.ts";
import type { IssuedCall } from "./permit.ts";

interface ChangeDetails {
  readonly nowUs: number;
  readonly lastRateDelayMs: number | undefined;
  readonly origin: ChangeOrigin;
}

/** Emits the events of the breakers. Frequent events are not built when there is no listener. */
export class BreakerEmitter extends Listeners<BreakerEvent> {
  beforeCall(
    host: string,
    role: Role,
    resolver: string | undefined,
    state: CircuitState,
    denial: Denial | undefined,
  ): void {
    const { reason, retryAfterMs: remaining_ms = 0 } = denial ?? {};
    const facts = { host, role, resolver, allowed: denial === undefined, state: denial?.state ?? state };
    this.emit({ event_type: "breaker_before_call", ...facts, reason, remaining_ms });
  }

  result({ host, role }: IssuedCall, { outcome, status, retryAfterMs }: CallResult): void {
    if (this.isEmpty) return;
    const retry_after_s = retryAfterMs === undefined ? undefined : retryAfterMs / 1000;
    const event_type = outcome.kind === "success" ? "breaker_success" : "breaker_failure";
    this.emit({ event_type, host: host.name, role, status, retry_after_s });
  }

  changed(
    { name, policy }: CircuitHolder,
    old: Circuit,
    now: Circuit,
    { nowUs, lastRateDelayMs, origin }: ChangeDetails,
  ): void {
    if (old.kind === now.kind) return;
    // The real duration of this opening: an adaptive reset may be longer than the policy says.
    const reset_timeout_s = (now.kind === "open" ? now.untilUs - nowUs : policy.resetUs) / 1e6;
    this.emit({
      event_type: "breaker_state_change",
      ...name,
      old: stateName(old),
      new: stateName(now),
      reset_timeout_s,
      last_rate_delay_ms: lastRateDelayMs,
      ...(origin === "peer" && { heard: true }),
    });
  }

  cooled(host: string, until: number, reason: OpenReason, isFromPeer: boolean, role?: Role): void {
    const facts = { host, ...(role !== undefined && { role }), until, reason };
    this.emit({ event_type: "breaker_cooldown_set", ...facts, ...(isFromPeer && { heard: true }) });
  }

  cooldownEnded(host: string, by: "success" | "operator", role?: Role): void {
    this.emit({ event_type: "breaker_cooldown_ended", host, ...(role !== undefined && { role }), by });
  }

  shadowed({ host, role, reason, retryAfterMs: remaining_ms }: Denial): void {
    this.emit({ event_type: "breaker_shadow", host, role, reason, remaining_ms });
  }

  resetRaised(host: string, oldUs: number, newUs: number): void {
    this.emit({ event_type: "breaker_reset_raised", host, old_s: oldUs / 1e6, new_s: newUs / 1e6 });
  }
}
