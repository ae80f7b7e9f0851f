import type { CircuitState } from "../breaker/breaker-events.ts";
import type { Role } from "../policy/roles.ts";

/** The events of the hub itself. Event and field names are public. No event holds a URL: its query may hold a key. */
export type HttpEvent =
  /** A call has ended. One event per call, whatever the number of attempts. */
  | {
      readonly event_type: "http_request";
      /** The canonical host. */
      readonly host: string;
      readonly role: Role;
      /** The resolver that made the call. */
      readonly resolver: string | undefined;
      /** A hash of the partition; undefined for a call without one. */
      readonly partition: string | undefined;
      readonly method: string;
      /** Undefined when there was no response. */
      readonly status: number | undefined;
      /** The code of the error that ended the call; undefined when it succeeded. */
      readonly error: string | undefined;
      /** Served from the cache; also true for a revalidated response. */
      readonly from_cache: boolean;
      /** The server confirmed the stored response (304). */
      readonly revalidated: boolean;
      /** Served from the cache although no longer fresh. */
      readonly stale: boolean;
      /** Answered by another identical request in flight. */
      readonly coalesced: boolean;
      /** Number of requests sent. */
      readonly attempts: number;
      /** Retry-After of the last response, in seconds. */
      readonly retry_after_s: number | undefined;
      /** Time waited before sending, over all attempts, in ms. */
      readonly rate_delay_ms: number;
      /** Part of `rate_delay_ms` spent waiting for a concurrency slot, in ms. */
      readonly rate_concurrency_wait_ms: number;
      /** The worst circuit of the host at the end of the call. */
      readonly breaker_host_state: CircuitState;
      /** Undefined for a call without a resolver. */
      readonly breaker_resolver_state: CircuitState | undefined;
      /** Time until the circuit or cooldown ends, in ms; 0 when closed. */
      readonly breaker_open_remaining_ms: number;
      /** The outcome of the last attempt; undefined when nothing was sent. */
      readonly breaker_recorded: "success" | "failure" | "neutral" | undefined;
      /** From the call to the end of the body, waits included, in ms. */
      readonly elapsed_ms: number;
      /** A hash of the URL. */
      readonly url_hash: string;
    }
  /** An attempt failed, and the call will be sent again. */
  | {
      readonly event_type: "http_retry";
      readonly host: string;
      readonly role: Role;
      /** Number of the failed attempt, from 1. */
      readonly attempt: number;
      /** Delay before the next attempt, in ms. */
      readonly delay_ms: number;
      /** Undefined when there was no response. */
      readonly status: number | undefined;
      /** The code of the error; undefined when there was a response. */
      readonly error: string | undefined;
    }
  /** The caller did not read a response body for `unreadBodyMs`; the request was aborted and its slot released. */
  | {
      readonly event_type: "body_unread";
      readonly host: string;
      readonly role: Role;
      /** `unreadBodyMs` of the hub. */
      readonly unread_ms: number;
    }
  /** The cache file cannot be read or written; responses are not cached. */
  | {
      readonly event_type: "cache_trouble";
      readonly message: string;
    }
  /** A request was sent past the installed hub, so no limit applied to it. One event per host, at most 100. */
  | {
      readonly event_type: "bypassed";
      /** The canonical host. */
      readonly host: string;
      /** The module that sent it: `undici` or `node:http`. */
      readonly client: string;
    }
  /** The robots.txt of a host has a Crawl-delay: one landing or artifact request of this host is sent within it. */
  | {
      readonly event_type: "crawl_delay";
      /** The canonical host. */
      readonly host: string;
      /** The delay in force, at most 60 s. */
      readonly seconds: number;
    }
  /** The policy was loaded or reloaded. The first event that a listener gets. */
  | {
      readonly event_type: "policy_loaded";
      /** A hash of the effective policy. */
      readonly config_hash: string;
    }
  /** A reload has changed one value of the policy. One event per value, at most 200 per reload. */
  | {
      readonly event_type: "policy_changed";
      /** The file and the keys: `ratelimits.hosts.api.example.org.metadata.rates`. */
      readonly setting: string;
      /** The value before; undefined when it was not set. Values of identities are not shown. */
      readonly old: string | undefined;
      /** The value now; undefined when it is no longer set. */
      readonly new: string | undefined;
      /** Where the value comes from: a file with its line, a variable or a flag. */
      readonly source: string;
      /** Number of values that the reload has changed. */
      readonly changes: number;
    }
  /** A reload was refused, because the policy is invalid or names another store. The old policy stays in force. */
  | {
      readonly event_type: "policy_rejected";
      /** Every problem, without passwords. */
      readonly message: string;
    };
