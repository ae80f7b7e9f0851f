import type { Circuit } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import type { Role } from "../policy/roles.ts";

/** As tables and events name them. */
export type CircuitState = "closed" | "open" | "half_open";

/** Whose circuit: a role at a host, or a resolver whatever its hosts. */
export interface CircuitName {
  readonly host?: string;
  readonly role?: Role;
  readonly resolver?: string;
}

/**
 * What the breakers tell. With the times of these events a reader can derive the time saved (each refusal's
 * `remaining_ms`), successes after an opening (`half_open` to `closed`), and the mix of reasons.
 */
export type BreakerEvent =
  | {
      readonly event_type: "breaker_before_call";
      readonly host: string;
      readonly role: Role;
      readonly resolver: string | undefined;
      readonly allowed: boolean;
      readonly state: CircuitState;
      readonly reason: OpenReason | undefined;
      readonly remaining_ms: number;
    }
  | ({ readonly event_type: "breaker_success" | "breaker_failure"; readonly host: string; readonly role: Role } & {
      readonly status: number | undefined;
      readonly retry_after_s: number | undefined;
    })
  | ({
      readonly event_type: "breaker_state_change";
      readonly old: CircuitState;
      readonly new: CircuitState;
      readonly reset_timeout_s: number;
      /** Another process has told it. */
      readonly heard?: true;
      /** How long the last call to this host had waited at the gate; undefined where there is none, and for a resolver. */
      readonly last_rate_delay_ms: number | undefined;
    } & CircuitName)
  | {
      readonly event_type: "breaker_cooldown_set";
      readonly host: string;
      /** Epoch milliseconds. */
      readonly until: number;
      readonly reason: OpenReason;
    }
  | { readonly event_type: "breaker_cooldown_ended"; readonly host: string; readonly by: "success" | "operator" }
  /** A host in shadow mode: it was called although it would have been left alone. */
  | {
      readonly event_type: "breaker_shadow";
      readonly host: string;
      readonly role: Role;
      readonly reason: OpenReason;
      readonly remaining_ms: number;
    }
  | {
      readonly event_type: "breaker_reset_raised";
      readonly host: string;
      readonly old_s: number;
      readonly new_s: number;
    };

export function stateName(circuit: Circuit): CircuitState {
  return circuit.kind === "half-open" ? "half_open" : circuit.kind;
}
