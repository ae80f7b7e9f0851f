import type { CallResult } from "../core/breaker/call-result.ts";
import type { Circuit } from "../core/breaker/circuit.ts";
import { faultText } from "../core/breaker/classify.ts";
import type { OpenReason } from "../errors.ts";
import { Listeners } from "../listeners.ts";
import type { Role } from "../policy/roles.ts";
import type { ChangeOrigin } from "./breaker-change.ts";
import type { BreakerEvent, CircuitState } from "./breaker-events.ts";
import { type CircuitHolder, failuresOf, stateName } from "./circuit-holder.ts";
import type { Denial } from "./denial.ts";
import type { IssuedCall } from "./permit.ts";

interface ChangeDetails {
  readonly nowUs: number;
  readonly lastRateDelayMs: number | undefined;
  readonly origin: ChangeOrigin;
}

interface FailureDetails {
  /** The circuit before the call changes it. */
  readonly at: Circuit;
  /** The call belongs to a burst of throttles that was already counted. */
  readonly isRepeated: boolean;
  /** The cooldown that a Retry-After causes; undefined without one. */
  readonly cooldownMs: number | undefined;
}

/** Emits the events of the breakers. Before a frequent event, callers check `hasListener`. */
export class BreakerEmitter extends Listeners<BreakerEvent> {
  beforeCall(
    host: string,
    role: Role,
    resolver: string | undefined,
    state: CircuitState,
    denial: Denial | undefined,
  ): void {
    this.emit({
      event_type: "breaker_before_call",
      host,
      role,
      resolver,
      allowed: denial === undefined,
      state: denial?.state ?? state,
      reason: denial?.reason,
      remaining_ms: denial?.retryAfterMs ?? 0,
    });
  }

  /** `at`: the circuit before the call changes it. */
  succeeded({ host, role, circuit }: IssuedCall, { status }: CallResult, at: Circuit): void {
    const fail_counter = at.generation === circuit.generation ? 0 : failuresOf(at);
    this.emit({ event_type: "breaker_success", host: host.name, role, status, state: stateName(at), fail_counter });
  }

  failed(
    { host, role, circuit }: IssuedCall,
    result: CallResult,
    { at, isRepeated, cooldownMs }: FailureDetails,
  ): void {
    const { outcome, status, error, retryAfterMs } = result;
    const isThrottled = outcome.kind === "failure" && outcome.throttled;
    const isCounted = at.generation === circuit.generation && !isRepeated;
    const fault = error === undefined ? undefined : faultText(error);
    this.emit({
      event_type: "breaker_failure",
      host: host.name,
      role,
      status,
      state: stateName(at),
      fail_counter: isCounted ? failuresWith(at, isThrottled) : failuresOf(at),
      exc_type: fault?.type,
      msg: fault?.message,
      retry_after_s: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
      cooldown_s: cooldownMs === undefined ? undefined : cooldownMs / 1000,
    });
  }

  changed(
    { name, policy }: CircuitHolder,
    before: Circuit,
    after: Circuit,
    { nowUs, lastRateDelayMs, origin }: ChangeDetails,
  ): void {
    if (before.kind === after.kind) return;
    // How long the circuit really stays open: an adaptive reset may be longer than the policy says.
    const reset_timeout_s = (after.kind === "open" ? after.untilUs - nowUs : policy.resetUs) / 1e6;
    this.emit({
      event_type: "breaker_state_change",
      ...name,
      old: stateName(before),
      new: stateName(after),
      reset_timeout_s,
      last_rate_delay_ms: lastRateDelayMs,
      ...(origin === "peer" && { from_peer: true }),
    });
  }

  cooldownSet(host: string, until: number, reason: OpenReason, isFromPeer: boolean, role?: Role): void {
    const facts = { host, ...(role !== undefined && { role }), until, reason };
    this.emit({ event_type: "breaker_cooldown_set", ...facts, ...(isFromPeer && { from_peer: true }) });
  }

  cooldownEnded(host: string, by: "success" | "operator", role?: Role): void {
    this.emit({ event_type: "breaker_cooldown_ended", host, ...(role !== undefined && { role }), by });
  }

  shadowed({ host, role, reason, retryAfterMs: remaining_ms }: Denial, decidedBy: string | undefined): void {
    const decided = decidedBy === undefined ? undefined : { decided_by: decidedBy };
    this.emit({ event_type: "breaker_shadow", host, role, reason, remaining_ms, ...decided });
  }

  resetRaised(host: string, oldUs: number, newUs: number): void {
    this.emit({ event_type: "breaker_reset_raised", host, old_s: oldUs / 1e6, new_s: newUs / 1e6 });
  }
}

/** The number of failures after one more. */
function failuresWith(circuit: Circuit, isThrottled: boolean): number {
  if (circuit.kind !== "closed") return 1;
  const { failures, throttles } = circuit;
  return isThrottled ? Math.max(failures, throttles + 1) : Math.max(failures + 1, throttles);
}
