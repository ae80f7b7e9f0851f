import type { CircuitState } from "../breaker/breaker-events.ts";
import type { Role } from "../policy/roles.ts";

/** What the hub itself tells; names and fields as the documents list them. No URL: its query may hold a key. */
export type HttpEvent =
  | {
      readonly event_type: "http_request";
      readonly host: string;
      readonly role: Role;
      readonly resolver: string | undefined;
      readonly method: string;
      /** Undefined when there was no answer. */
      readonly status: number | undefined;
      readonly error: string | undefined;
      readonly from_cache: boolean;
      readonly revalidated: boolean;
      readonly stale: boolean;
      readonly coalesced: boolean;
      readonly attempts: number;
      readonly retry_after_s: number | undefined;
      /** Waited at the gate, over all attempts. */
      readonly rate_delay_ms: number;
      /** How much of that was for a slot, or for a turn, and not for a rate. */
      readonly rate_concurrency_wait_ms: number;
      readonly breaker_host_state: CircuitState;
      /** Undefined for a request without a resolver. */
      readonly breaker_resolver_state: CircuitState | undefined;
      readonly breaker_open_remaining_ms: number;
      readonly breaker_recorded: "success" | "failure" | "neutral" | undefined;
      readonly elapsed_ms: number;
      readonly url_hash: string;
    }
  | {
      readonly event_type: "http_retry";
      readonly host: string;
      readonly role: Role;
      /** The attempt that failed, counted from 1. */
      readonly attempt: number;
      readonly delay_ms: number;
      readonly status: number | undefined;
      readonly error: string | undefined;
    }
  | {
      readonly event_type: "body_unread";
      readonly host: string;
      readonly role: Role;
      readonly unread_ms: number;
    }
  | { readonly event_type: "cache_trouble"; readonly message: string }
  /** What the hub goes by. The first that a listener hears, and told again after each reload. */
  | { readonly event_type: "policy_loaded"; readonly config_hash: string };
