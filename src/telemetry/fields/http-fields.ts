import { callId, type EventSpecs, host, role } from "./event-spec.ts";

/** The events of the hub: calls, attempts, cache, robots.txt and policy. */
export const HTTP_SPECS = {
  http_request: {
    about:
      "A call has ended. One event per call, whatever the number of attempts; a background refresh of the cache is a call of the hub itself.",
    fields: {
      call_id: callId,
      host: ["text", "canonical host that was called"],
      final_host: ["text", "host that ended the call; differs from host after redirects that the hub has followed"],
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
      aborted: [
        "flag",
        "the caller ended the call, by its signal or without reading the whole body, or the hub was destroyed",
      ],
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
      unsent_slot_wait_ms: ["number", "part of unsent_wait_ms spent waiting for a concurrency slot"],
      breaker_host_state: ["text", "`closed`, `open` or `half_open` of final_host, at the end of the call"],
      breaker_resolver_state: ["text?", "state of the resolver's circuit; absent for a call without a resolver"],
      breaker_open_remaining_ms: ["number", "time until the circuit or cooldown ends, in ms; 0 when closed"],
      breaker_recorded: [
        "text?",
        "outcome of the last attempt: `success`, `failure` or `neutral`; absent without an attempt, and when it has not ended",
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
      cooldown_key: [
        "text?",
        "the host, service or partition whose cooldowns hold it back, as in `breaker_cooldown_set`; absent in files of earlier versions",
      ],
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
      connect_ms: ["number?", "time to connect, until the request was written, in ms; absent without a connection"],
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
    about:
      "A request was sent past the installed hub, or past `hub.fetch`, so no limit applied to it. One event per host, at most 100.",
    fields: {
      host,
      client: [
        "text",
        "what sent it: `undici`, `node:http`, or `fetch` if the global fetch was replaced before docstokg was loaded",
      ],
    },
  },
  crawl_delay: {
    about: "The robots.txt of a host has a Crawl-delay: its landing and artifact requests are at least this far apart.",
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
} satisfies Partial<EventSpecs>;
