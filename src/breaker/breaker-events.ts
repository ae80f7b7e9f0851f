import type { StoreEvent } from "../core/store-event.ts";
import type { OpenReason } from "../errors.ts";
import type { Role } from "../policy/roles.ts";

/**
 * `closed`: calls pass. `open`: calls are refused. `half_open`: a few trial calls pass, and their results close the
 * circuit or open it again.
 */
export type CircuitState = "closed" | "open" | "half_open";

/** The circuit of a role of a host (`host` and `role`), or of a resolver (`resolver` alone). */
export interface CircuitName {
  /** The canonical name of the host; undefined for a resolver. */
  readonly host?: string;
  /** The role; undefined for a resolver. */
  readonly role?: Role;
  /** The name of the resolver; undefined for a host. */
  readonly resolver?: string;
}

/**
 * The events of the breakers. A reader can derive the time saved (`remaining_ms` of each refusal), the recoveries
 * (`half_open` to `closed`) and the share of each reason.
 */
export type BreakerEvent =
  /** A call has asked for a permit. */
  | {
      readonly event_type: "breaker_before_call";
      /** The canonical name of the host. */
      readonly host: string;
      /** The role of the call. */
      readonly role: Role;
      /** The resolver that makes the call, if one was named. */
      readonly resolver: string | undefined;
      /** Whether the call got a permit. */
      readonly allowed: boolean;
      /** State of the circuit that decided. */
      readonly state: CircuitState;
      /** Why the call was denied; undefined when it was allowed. */
      readonly reason: OpenReason | undefined;
      /** Milliseconds until the call could be permitted; 0 when it was allowed. */
      readonly remaining_ms: number;
    }
  /** A call has succeeded. Neutral outcomes emit no event. */
  | {
      readonly event_type: "breaker_success";
      /** The canonical name of the host. */
      readonly host: string;
      /** The role of the call. */
      readonly role: Role;
      /** HTTP status; undefined when the call was reported without one. */
      readonly status: number | undefined;
      /** State of the circuit when the call ended, before the call changed it. */
      readonly state: CircuitState;
      /**
       * Consecutive failures that the circuit has counted, after this success. 0, unless the success does not count
       * because the circuit has changed its state since the call got its permit.
       */
      readonly fail_counter: number;
    }
  /** A call has failed. */
  | {
      readonly event_type: "breaker_failure";
      /** The canonical name of the host. */
      readonly host: string;
      /** The role of the call. */
      readonly role: Role;
      /** HTTP status; undefined when the call ended without a response. */
      readonly status: number | undefined;
      /** State of the circuit when the call ended, before the call changed it. */
      readonly state: CircuitState;
      /**
       * Consecutive failures after this call, or throttles since the last success if those are more; 1 for a trial
       * call. This call is not in it if the circuit has changed its state since the call got its permit, or if the
       * burst that its throttle belongs to was counted already.
       */
      readonly fail_counter: number;
      /** Name or code of the network error; undefined for a response. */
      readonly exc_type: string | undefined;
      /** Message of the network error, without URLs; undefined for a response. */
      readonly msg: string | undefined;
      /** The Retry-After that the response asked for, in seconds; undefined when there was none. */
      readonly retry_after_s: number | undefined;
      /**
       * The cooldown that the Retry-After starts, at most `retry_after_cap_s`. Undefined if the failure is no throttle,
       * or if there is no Retry-After above 0.
       */
      readonly cooldown_s: number | undefined;
    }
  /** A circuit has changed its state. */
  | ({
      readonly event_type: "breaker_state_change";
      /** State before the change. */
      readonly old: CircuitState;
      /** State after the change. */
      readonly new: CircuitState;
      /** For a circuit that opens, how many seconds it stays open; otherwise the reset timeout of its policy. */
      readonly reset_timeout_s: number;
      /** Present when the change was read from the record of another process. */
      readonly from_peer?: true;
      /**
       * Milliseconds that the last call to this host waited for rate limits; undefined without a hub and for a
       * resolver.
       */
      readonly last_rate_delay_ms: number | undefined;
    } & CircuitName)
  /**
   * A cooldown of a host has started, or its end has changed. Also emitted for the cooldown that is left when another one
   * of the host has ended early.
   */
  | {
      readonly event_type: "breaker_cooldown_set";
      /** The canonical name of the host, or `resolver <name>` when an operator has opened a resolver. */
      readonly host: string;
      /** Present when an operator has opened this role alone. */
      readonly role?: Role;
      /** End of the cooldown in epoch milliseconds. */
      readonly until: number;
      /** Why the host is in cooldown. */
      readonly reason: OpenReason;
      /** Present when the cooldown was read from the record of another process. */
      readonly from_peer?: true;
    }
  /** A cooldown has ended early, by a successful call or by an operator, and no other cooldown of the host is left. */
  | {
      readonly event_type: "breaker_cooldown_ended";
      /** The canonical name of the host, or `resolver <name>` when an operator had opened a resolver. */
      readonly host: string;
      /** Present when an operator had opened this role alone. */
      readonly role?: Role;
      /** What ended it. */
      readonly by: "success" | "operator";
    }
  /** A host in shadow mode was called although its circuit or a cooldown would have refused the call. */
  | {
      readonly event_type: "breaker_shadow";
      /** The canonical name of the host. */
      readonly host: string;
      /** The role of the call. */
      readonly role: Role;
      /** Why the call would have been refused. */
      readonly reason: OpenReason;
      /** Milliseconds until the call would have been permitted. */
      readonly remaining_ms: number;
      /** The setting that decided and where it was set: `fail_max 5 (breakers.yaml:12)`. Absent without a hub. */
      readonly decided_by?: string;
    }
  /**
   * The reset timeout of a host was raised, because its Retry-After values are longer. It stays raised until the process
   * ends, an operator closes the host, or the idle host is evicted.
   */
  | {
      readonly event_type: "breaker_reset_raised";
      /** The canonical name of the host. */
      readonly host: string;
      /** Reset timeout before, in seconds. */
      readonly old_s: number;
      /** Reset timeout from now on, in seconds. */
      readonly new_s: number;
    }
  /** The shared store was lost, or has returned. Only a `BreakerRegistry` with its own store emits these. */
  | StoreEvent;
