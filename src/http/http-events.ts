import type { CircuitState } from "../breaker/breaker-events.ts";
import type { Role } from "../policy/roles.ts";

/**
 * Why a request was sent. `call`: for a caller, the first time. `retry`: again, after a failure. `redirect`: to the
 * target of a redirect that the hub follows. `revalidation`: to confirm a stored response. `refresh`: the same in the
 * background. `probe`: as a trial call of a half-open circuit; this cause replaces every other one.
 */
export type AttemptCause = "call" | "retry" | "redirect" | "revalidation" | "refresh" | "probe";

/**
 * How an attempt ended. `answered`: a complete response that is not a failure, 404 included. `throttled`: 429 or 503.
 * `failed`: another 5xx, 408 or an error. `aborted`: ended by the caller, or by the hub because no caller needs it.
 * `unprocessed`: the server ended the HTTP/2 session before it processed the request.
 */
export type AttemptOutcome = "answered" | "throttled" | "failed" | "aborted" | "unprocessed";

/** What a breaker recorded. */
export type RecordedOutcome = "success" | "failure" | "neutral";

/** The events of the hub itself. Event and field names are public. No event holds a URL: its query may hold a key. */
export type HttpEvent =
  /**
   * A call has ended. One event per call, whatever the number of attempts; a background refresh of the cache is a call of
   * the hub itself.
   */
  | {
      readonly event_type: "http_request";
      /** Unique among all processes. The `http_attempt` events of the call have the same. */
      readonly call_id: string;
      /** The canonical host that was called. */
      readonly host: string;
      /** The host that ended the call; differs from `host` after redirects that the hub has followed. */
      readonly final_host: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** The resolver that made the call. */
      readonly resolver: string | undefined;
      /** A hash of the partition; undefined for a call without one. */
      readonly partition: string | undefined;
      /** The HTTP method. */
      readonly method: string;
      /** Undefined when there was no response. */
      readonly status: number | undefined;
      /** The code of the error that ended the call; undefined when it succeeded. */
      readonly error: string | undefined;
      /**
       * The setting that refused the call, or that its longest wait was for, and where it was set, as in
       * `10/SECOND (ratelimits.yaml:34)`. Absent for a call that was neither refused nor delayed.
       */
      readonly decided_by?: string;
      /** The caller ended the call, by its signal or without reading the whole body, or the hub was destroyed. */
      readonly aborted: boolean;
      /** The hub made the call itself, to refresh a stored response that it had served stale. */
      readonly background: boolean;
      /** Served from the cache; also true for a revalidated response. */
      readonly from_cache: boolean;
      /** The server confirmed the stored response (304). */
      readonly revalidated: boolean;
      /** Served from the cache although no longer fresh. */
      readonly stale: boolean;
      /** Answered by another identical request in flight. */
      readonly coalesced: boolean;
      /** Number of requests sent. An attempt without a connection sends nothing. */
      readonly attempts: number;
      /** Retry-After of the last response, in seconds. */
      readonly retry_after_s: number | undefined;
      /** Time waited before sending, over all attempts, in ms. A wait that ended without a grant is included. */
      readonly rate_delay_ms: number;
      /** Part of `rate_delay_ms` spent waiting for a concurrency slot, in ms. */
      readonly rate_concurrency_wait_ms: number;
      /** Part of `rate_delay_ms` spent waiting for an open circuit or a cooldown, in ms. */
      readonly breaker_wait_ms: number;
      /** Part of `rate_delay_ms` that ended without an attempt, in ms: refused, or aborted while waiting. */
      readonly unsent_wait_ms: number;
      /** Part of `unsent_wait_ms` spent waiting for a concurrency slot, in ms. */
      readonly unsent_slot_wait_ms: number;
      /** The worst circuit of `final_host` at the end of the call. */
      readonly breaker_host_state: CircuitState;
      /** Undefined for a call without a resolver. */
      readonly breaker_resolver_state: CircuitState | undefined;
      /** Time until the circuit or cooldown ends, in ms; 0 when closed. */
      readonly breaker_open_remaining_ms: number;
      /** The outcome of the last attempt; undefined when there was none, and when it has not ended. */
      readonly breaker_recorded: RecordedOutcome | undefined;
      /** From the call to the end of the body, waits included, in ms. */
      readonly elapsed_ms: number;
      /** A hash of the URL. */
      readonly url_hash: string;
    }
  /** An attempt to send a request has ended. One event per attempt: every total is counted from these. */
  | {
      readonly event_type: "http_attempt";
      /** The `call_id` of the call that it was sent for. */
      readonly call_id: string;
      /** Number within the call, from 1. */
      readonly attempt: number;
      /** Why it was sent. */
      readonly cause: AttemptCause;
      /** The canonical host that it was sent to. */
      readonly host: string;
      /** Name of the host, or `service <name>`: whose rate limits it used. */
      readonly key: string;
      /**
       * Name of the host, or `service <name>`, whose cooldowns hold it back, as `breaker_cooldown_set` has it. Undefined
       * for a request of a limiter without breakers.
       */
      readonly cooldown_key: string | undefined;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** The resolver that made the call. */
      readonly resolver: string | undefined;
      /** A hash of the partition; undefined for a call without one. */
      readonly partition: string | undefined;
      /** The HTTP method. */
      readonly method: string;
      /** Time in the queue for a rate limit, in ms. */
      readonly rate_wait_ms: number;
      /** Time in the queue for a concurrency slot, in ms. */
      readonly slot_wait_ms: number;
      /** Time in the queue for the end of an open circuit or a cooldown, in ms. */
      readonly breaker_wait_ms: number;
      /** The setting that most of the time in the queue was spent on, and where it was set. Absent without a wait. */
      readonly decided_by?: string;
      /** Random delay of a trial call, in ms. */
      readonly jitter_wait_ms: number;
      /** Delay between the attempt before and this one, in ms: backoff or Retry-After. */
      readonly retry_wait_ms: number;
      /**
       * `none` when no connection was made: nothing was sent. With a dispatcher of the caller that emits no `connect`
       * events, a new connection is shown as `reused`.
       */
      readonly connection: "new" | "reused" | "none";
      /** Undefined when there was no response. */
      readonly status: number | undefined;
      /** The code of the error; undefined when the response was complete. */
      readonly error: string | undefined;
      /** How the attempt ended. */
      readonly outcome: AttemptOutcome;
      /** What the breaker recorded; undefined when it recorded nothing. */
      readonly breaker_recorded: RecordedOutcome | undefined;
      /** Retry-After of the response, in seconds. */
      readonly retry_after_s: number | undefined;
      /** Bytes of the request's body that were sent. */
      readonly request_bytes: number;
      /** Bytes of the response's body that were received, before decoding. */
      readonly response_bytes: number;
      /** Until the request was written: time to connect, in ms. */
      readonly connect_ms: number | undefined;
      /** From writing the request to the head of the response, in ms. */
      readonly first_byte_ms: number | undefined;
      /** From the end of the waits to the end of the body, in ms. */
      readonly elapsed_ms: number;
    }
  /** An attempt failed, and the call will be sent again. */
  | {
      readonly event_type: "http_retry";
      /** The `call_id` of the call. */
      readonly call_id: string;
      /** The canonical host. */
      readonly host: string;
      /** `metadata`, `landing` or `artifact`. */
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
      /** The canonical host. */
      readonly host: string;
      /** `metadata`, `landing` or `artifact`. */
      readonly role: Role;
      /** `unreadBodyMs` of the hub. */
      readonly unread_ms: number;
    }
  /** The cache file cannot be read or written; responses are not cached. */
  | {
      readonly event_type: "cache_trouble";
      /** The file and the error. */
      readonly message: string;
    }
  /**
   * A request was sent past the installed hub, or past `hub.fetch`, so no limit applied to it. One event per host, at
   * most 100.
   */
  | {
      readonly event_type: "bypassed";
      /** The canonical host. */
      readonly host: string;
      /** What sent it: `undici`, `node:http`, or `fetch` if the global fetch was replaced before docstokg was loaded. */
      readonly client: string;
    }
  /** The robots.txt of a host has a Crawl-delay: its landing and artifact requests are at least this far apart. */
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
      /** The value before; undefined when it was not set. The values of identification fields are not shown. */
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
