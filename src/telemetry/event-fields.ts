/**
 * Describes every event and its fields. The compiler checks that no field is missing and that kinds match the event
 * types. Events read from files are checked against it (event-check.ts), and the guide's tables are generated from it.
 */
import type { EventBodyOf, EventType } from "./events.ts";

type KeysOf<Union> = Union extends unknown ? Exclude<keyof Union, "event_type"> : never;
type ValueAt<Union, Key extends PropertyKey> = Union extends unknown
  ? Key extends keyof Union
    ? Union[Key]
    : undefined
  : never;
type Plain<Value> = [Value] extends [number]
  ? "number"
  : [Value] extends [boolean]
    ? "flag"
    : [Value] extends [string]
      ? "text"
      : "number or text";
type KindOf<Value> = undefined extends Value ? `${Plain<Exclude<Value, undefined>>}?` : Plain<Value>;

/** `?` marks a field that may be absent. */
export type FieldKind = `${"number" | "flag" | "text" | "number or text"}${"" | "?"}`;
export type FieldSpec = readonly [kind: FieldKind, about: string];

type SpecOf<Type extends EventType> = {
  readonly about: string;
  readonly fields: {
    readonly [Key in KeysOf<EventBodyOf<Type>>]: readonly [
      kind: KindOf<ValueAt<EventBodyOf<Type>, Key>>,
      about: string,
    ];
  };
};

const callId = ["text", "id of the call, unique among all processes; the events of one call have the same"] as const;
const host = ["text", "canonical host"] as const;
const key = ["text", "the host, or the service whose limits apply"] as const;
const role = ["text", "`metadata`, `landing` or `artifact`"] as const;
const adjusted = {
  host: key,
  role,
  old: ["number or text", "value before the change"],
  new: ["number or text", "value after the change"],
  reason: ["text", "reason of the change"],
} as const;
const result = {
  host,
  role,
  status: ["number?", "status of the response; absent when there was none"],
  state: ["text", "state of the circuit before the call changed it: `closed`, `open` or `half_open`"],
} as const;

export const EVENT_SPECS: { readonly [Type in EventType]: SpecOf<Type> } = {
  http_request: {
    about:
      "A call has ended. One event per call, whatever the number of attempts; a background refresh of the cache is a call of the hub itself.",
    fields: {
      call_id: callId,
      host: ["text", "canonical host that was called"],
      final_host: ["text", "host that ended the call: another than host after redirects that the hub has followed"],
      role,
      resolver: ["text?", "resolver that made the call"],
      partition: ["text?", "hash of the partition of the call"],
      method: ["text", "HTTP method"],
      status: ["number?", "status of the response; absent when there was none"],
      error: ["text?", "code of the error that ended the call"],
      decided_by: [
        "text?",
        "the setting that refused the call, or that its longest wait was for, and where it was set, as in `10/SECOND (ratelimits.yaml:34)`",
      ],
      aborted: ["flag", "the caller ended the call, by its signal or without reading the whole body"],
      background: ["flag", "the hub made the call itself, to refresh a stored response that it had served stale"],
      from_cache: ["flag", "served from the cache; also true for a revalidated response"],
      revalidated: ["flag", "the server confirmed the stored response (304)"],
      stale: ["flag", "served from the cache although no longer fresh"],
      coalesced: ["flag", "answered by another identical request in flight"],
      attempts: ["number", "number of requests sent; an attempt without a connection sends nothing"],
      retry_after_s: ["number?", "Retry-After of the last response, in s"],
      rate_delay_ms: ["number", "time waited before sending, over all attempts, in ms; waits without a grant included"],
      rate_concurrency_wait_ms: ["number", "part of rate_delay_ms spent waiting for a concurrency slot"],
      breaker_wait_ms: ["number", "part of rate_delay_ms spent waiting for an open circuit or a cooldown"],
      unsent_wait_ms: [
        "number",
        "part of rate_delay_ms that ended without an attempt: refused, or aborted while waiting",
      ],
      breaker_host_state: ["text", "`closed`, `open` or `half_open` of final_host, at the end of the call"],
      breaker_resolver_state: ["text?", "state of the resolver's circuit; absent for a call without a resolver"],
      breaker_open_remaining_ms: ["number", "time until the circuit or cooldown ends, in ms; 0 when closed"],
      breaker_recorded: [
        "text?",
        "outcome of the last attempt: `success`, `failure` or `neutral`; absent without one, and when it has not ended",
      ],
      elapsed_ms: ["number", "from the call to the end of the body, waits included, in ms"],
      url_hash: ["text", "hash of the URL"],
    },
  },
  http_attempt: {
    about: "An attempt to send a request has ended. One event per attempt; every total is counted from these events.",
    fields: {
      call_id: callId,
      attempt: ["number", "number within the call, from 1"],
      cause: [
        "text",
        "`call`, `retry`, `redirect` (the hub follows one), `revalidation` (of a stored response), `refresh` (the same in the background) or `probe` (a trial call of a half-open circuit, whatever else it is)",
      ],
      host: ["text", "canonical host that it was sent to"],
      key: ["text", "the host, or the service whose limits it used"],
      role,
      resolver: ["text?", "resolver that made the call"],
      partition: ["text?", "hash of the partition of the call"],
      method: ["text", "HTTP method"],
      rate_wait_ms: ["number", "time in the queue for a rate limit, in ms"],
      slot_wait_ms: ["number", "time in the queue for a concurrency slot, in ms"],
      breaker_wait_ms: ["number", "time in the queue for the end of an open circuit or a cooldown, in ms"],
      decided_by: ["text?", "the setting that most of the time in the queue was spent on, and where it was set"],
      jitter_wait_ms: ["number", "random delay of a trial call, in ms"],
      retry_wait_ms: ["number", "delay since the attempt before, in ms: backoff or Retry-After; not in the queue"],
      connection: ["text", "`new`, `reused`, or `none` when no connection was made: then nothing was sent"],
      status: ["number?", "status of the response; absent when there was none"],
      error: ["text?", "code of the error; absent when the response was complete"],
      outcome: [
        "text",
        "`answered`, `throttled` (429, 503), `failed` (other 5xx, 408, an error), `aborted`, or `unprocessed` (the server ended the HTTP/2 session first)",
      ],
      breaker_recorded: ["text?", "what the breaker recorded: `success`, `failure` or `neutral`; absent for nothing"],
      retry_after_s: ["number?", "Retry-After of the response, in s"],
      request_bytes: ["number", "bytes of the request's body that were sent"],
      response_bytes: ["number", "bytes of the response's body that were received, before decoding"],
      connect_ms: ["number?", "until the request was written: time to connect, in ms; absent without a connection"],
      first_byte_ms: [
        "number?",
        "from writing the request to the head of the response, in ms; absent without a response",
      ],
      elapsed_ms: ["number", "from the end of the waits to the end of the body, in ms"],
    },
  },
  http_retry: {
    about: "An attempt failed, and the call will be sent again.",
    fields: {
      call_id: callId,
      host,
      role,
      attempt: ["number", "number of the failed attempt, from 1"],
      delay_ms: ["number", "delay before the next attempt, in ms"],
      status: ["number?", "status of the response; absent when there was none"],
      error: ["text?", "code of the error; absent when there was a response"],
    },
  },
  body_unread: {
    about: "The caller did not read a response body for unreadBodyMs; the request was aborted and its slot released.",
    fields: { host, role, unread_ms: ["number", "unreadBodyMs of the hub"] },
  },
  cache_trouble: {
    about: "The cache file cannot be read or written; responses are not cached.",
    fields: { message: ["text", "reason"] },
  },
  bypassed: {
    about: "A request was sent past the installed hub, so no limit applied to it. One event per host, at most 100.",
    fields: { host, client: ["text", "module that sent it: `undici` or `node:http`"] },
  },
  crawl_delay: {
    about: "The robots.txt of a host has a Crawl-delay: its landing and artifact requests are at least so far apart.",
    fields: { host, seconds: ["number", "delay in force, in s; at most 60"] },
  },
  policy_loaded: {
    about: "The first event of a hub, and again after each reload.",
    fields: { config_hash: ["text", "hash of the effective policy"] },
  },
  policy_changed: {
    about: "A reload has changed one value of the policy. One event per value, at most 200 per reload.",
    fields: {
      setting: ["text", "the file and the keys, such as `ratelimits.hosts.api.example.org.metadata.rates`"],
      old: ["text?", "value before; absent when it was not set"],
      new: ["text?", "value now; absent when it is no longer set"],
      source: ["text", "where the value comes from: a file with its line, a variable or a flag"],
      changes: ["number", "number of values that the reload has changed"],
    },
  },
  policy_rejected: {
    about: "A reload was refused, because the policy is invalid or names another store. The old policy stays in force.",
    fields: { message: ["text", "every problem"] },
  },
  "ratelimit.acquire": {
    about: "Result of one request for a rate-limit grant. One event per attempt.",
    fields: {
      key,
      role,
      rates: ["text", "rates in force, such as `10/SECOND+5000/HOUR`"],
      weight: ["number", "units used; 0 for a HEAD that the rate limit does not count"],
      costs: ["text?", "what it uses of other units, such as `credits 10`; absent if the limits count none"],
      mode: ["text", "`fail` for a call that never waits (maxWaitMs 0), and for a refusal on arrival; else `block`"],
      blocked_ms: ["number", "time in the queue, in ms"],
      decided_by: [
        "text?",
        "for a granted request: the setting that most of blocked_ms was spent on, and where it was set",
      ],
      outcome: ["text", "`granted`, `refused` or `aborted`"],
    },
  },
  "ratelimit.settle": {
    about: "The true cost of a request is known, and differs from what it was charged: a refund or a debt.",
    fields: {
      key,
      role,
      unit: ["text", "the unit, such as `credits`"],
      charged: ["number", "what the request was charged"],
      used: ["number", "what it really used"],
    },
  },
  "ratelimit.cooldown": {
    about: "The key is in cooldown: no request of it is sent until the end.",
    fields: { key, role, seconds: ["number", "length of the cooldown, in s"] },
  },
  "ratelimit.shadow": {
    about: "Shadow mode: the request was sent at once; in enforce mode it would have waited or been refused.",
    fields: {
      key,
      role,
      would: ["text", "`wait` or `refuse`"],
      wait_ms: ["number?", "estimated wait, in ms; absent when unknown"],
      constraint: ["text", "the limit that decided, such as `10/SECOND of api.example.org`"],
      decided_by: ["text?", "the setting that decided and where it was set, as in `10/SECOND (ratelimits.yaml:34)`"],
    },
  },
  rate_head_skipped: {
    about: "A HEAD request was sent that the rate limit does not count.",
    fields: { host: key, role },
  },
  aimd_adjust: { about: "AIMD changed the rate multiplier of a key.", fields: adjusted },
  guard_adjust: { about: "The guard of a key changed, in ms.", fields: adjusted },
  shape_adjust: { about: "The shape of a key changed to `smooth` (even spacing) or `burst`.", fields: adjusted },
  limit_learned: {
    about: "The server announced a stricter limit than the policy, or that limit expired.",
    fields: {
      key,
      role,
      what: ["text", "`rate` or `concurrency`"],
      old: ["text", "limit before the change"],
      new: ["text", "limit after the change"],
      source: ["text", "kind of header fields that announced the limit; `lapsed` when it expired"],
    },
  },
  limit_overruled: {
    about: "Another process has a stricter policy for this key; the stricter one applies to all processes.",
    fields: { host: key, role },
  },
  store_away: {
    about: "The shared store does not answer; `when_store_away` says what calls do. Once for each outage.",
    fields: {
      processes: ["number", "number of processes that the limits are divided by; 1 when it is not known"],
      mode: ["text", "what calls do until it is back: `share`, `wait` or `refuse`"],
      message: ["text", "reason"],
    },
  },
  store_back: {
    about: "The shared store answers again. Once for each outage.",
    fields: { away_ms: ["number", "milliseconds since `store_away`"] },
  },
  breaker_before_call: {
    about: "A breaker decided whether a call may be made. Every refusal is recorded; allowed calls are sampled.",
    fields: {
      host,
      role,
      resolver: ["text?", "resolver that made the call"],
      allowed: ["flag", "true when the call may be made"],
      state: ["text", "`closed`, `open` or `half_open`"],
      reason: ["text?", "why the call was refused: `failures`, `retry-after`, `rolling-window`, `cli-open:…`"],
      remaining_ms: ["number", "time until the circuit or cooldown ends, in ms; 0 when closed"],
      sample_rate: ["number?", "sampling rate; absent when every event is recorded"],
    },
  },
  breaker_success: {
    about: "A call succeeded.",
    fields: { ...result, fail_counter: ["number", "failures in a row after it"] },
  },
  breaker_failure: {
    about: "A call failed.",
    fields: {
      ...result,
      fail_counter: ["number", "failures in a row with this one; 1 for a trial call"],
      exc_type: ["text?", "name or code of the network error; absent for a response"],
      msg: ["text?", "message of the network error, without URLs; absent for a response"],
      retry_after_s: ["number?", "Retry-After that the response asked for, in s"],
      cooldown_s: ["number?", "the part of it that is honoured (`retry_after_cap_s`), in s"],
    },
  },
  breaker_state_change: {
    about: "A circuit opened, became half-open or closed. Never sampled.",
    fields: {
      host: ["text?", "absent for the circuit of a resolver"],
      role: ["text?", "absent for the circuit of a resolver"],
      resolver: ["text?", "resolver whose circuit changed"],
      old: ["text", "`closed`, `open` or `half_open`"],
      new: ["text", "`closed`, `open` or `half_open`"],
      reset_timeout_s: ["number", "when opened: time until half-open, in s"],
      last_rate_delay_ms: ["number?", "rate_delay_ms of the last call to the host"],
      heard: ["flag?", "true when another process caused the change"],
    },
  },
  breaker_cooldown_set: {
    about: "A cooldown was set for a host: all its roles are refused until it ends, or the one that an operator named.",
    fields: {
      host: ["text", "canonical host, or `resolver <name>` for an operator's order"],
      role: ["text?", "present when an operator has opened this role alone"],
      until: ["number", "end of the cooldown, in epoch ms"],
      reason: ["text", "`retry-after`, `rolling-window` or `cli-open:…`"],
      heard: ["flag?", "true when another process set it"],
    },
  },
  breaker_cooldown_ended: {
    about: "A cooldown ended early.",
    fields: {
      host: ["text", "canonical host, or `resolver <name>` for an operator's order"],
      role: ["text?", "present when an operator had opened this role alone"],
      by: ["text", "`success` or `operator`"],
    },
  },
  breaker_shadow: {
    about: "Shadow mode: the call was sent; in enforce mode the breaker would have refused it.",
    fields: {
      host,
      role,
      reason: ["text", "`failures`, `retry-after`, `rolling-window` or `cli-open:…`"],
      remaining_ms: ["number", "remaining time of the circuit or cooldown, in ms"],
      decided_by: ["text?", "the setting that decided and where it was set, as in `fail_max 5 (breakers.yaml:12)`"],
    },
  },
  breaker_reset_raised: {
    about: "reset_timeout was raised, because the host keeps sending longer Retry-After values.",
    fields: { host, old_s: ["number", "reset_timeout before, in s"], new_s: ["number", "reset_timeout after, in s"] },
  },
  run_started: {
    about: "The first event of a run.",
    fields: { program: ["text", "name of the program"], version: ["text", "version of docstokg"] },
  },
  run_ended: { about: "The last event of a run that ended normally.", fields: {} },
  telemetry_dropped: {
    about: "A sink was slower than the events; events before this one were dropped.",
    fields: {
      sink: ["text", "name of the sink"],
      dropped: ["number", "number dropped since the last telemetry_dropped event"],
    },
  },
};

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_SPECS, type);
}
