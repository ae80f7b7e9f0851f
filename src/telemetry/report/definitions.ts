/**
 * The definition of every number of a report, by its path in the JSON of `docstokg report --json`. The guide's table is
 * generated from it, and a test compares it with the summary itself.
 */
export const NUMBER_DEFINITIONS: Readonly<Record<string, string>> = {
  durationMs: "time of the last event minus time of the first one",
  events: "events of the run that were read",
  dropped: "sum of `dropped` of all `telemetry_dropped` events; above 0 all counts are too low",
  calls: "`http_request` events that are not `background`",
  "outcomes.*":
    "these calls, each counted once: `refused` by the hub; else `throttled` (status 429, 503) or `failed` (408, other 5xx) unless served from the cache; else `aborted` by the caller, if the breaker recorded no failure; else `failed` by an error; else `cached` (from the cache, or coalesced); else `answered`",
  refreshes: "`http_request` events that are `background`",
  "cache.hits": "calls served from the cache with `attempts` 0: the network was not used",
  "cache.stale": "the hits that were stale",
  "cache.afterRequest":
    "calls served from the cache after a request was sent and the response was not confirmed: the request failed, or a redirect led to a stored response",
  "cache.revalidated":
    "calls whose stored response the server confirmed (304); not hits, because each has used a rate-limit unit",
  "cache.coalesced": "calls answered by another identical request in flight",
  "cache.hitRate": "hits divided by calls",
  connectFailures: "`http_attempt` events with `connection` `none`: nothing was sent",
  "throttles.attempts":
    "`http_attempt` events with a connection: requests sent, those of refreshes, retries and redirects included",
  "throttles.answers429": "of these, responses with status 429",
  "throttles.answers503": "of these, responses with status 503",
  "throttles.rate": "429 and 503 together, divided by the requests sent",
  "delayMs.count": "waits: one for each `http_attempt`, and one for each call that waited without an attempt after it",
  "delayMs.p50":
    "the wait that half of them do not exceed, by nearest rank; exact for up to 65,536 waits above 0, then accurate to 1 % (`isExact` false). A wait is the time in the queue for rate limits, slots and open circuits, and the jitter of a trial call",
  "delayMs.p95": "the same for 95 %",
  "delayMs.max": "the longest wait",
  "delayMs.total": "the sum of all waits",
  "limiter.acquired": "`ratelimit.acquire` events with outcome `granted` and a weight above 0: grants that used a unit",
  "limiter.blocked": "`ratelimit.acquire` events with outcome `refused`",
  "limiter.headSkipped": "`rate_head_skipped` events: HEAD requests that the rate limit does not count",
  "breaker.opens":
    "circuits that opened and cooldowns that began, opened by this process or by an operator; an extended cooldown does not count again, and what another process has opened is counted there",
  "breaker.opensPerHour": "opens, divided by the duration in hours",
  "breaker.opensByReason.*":
    "opens by reason: consecutive failures, Retry-After, failures or slow calls in the rolling window, an operator",
  "breaker.denied": "calls that a breaker refused",
  "breaker.timeSavedMs":
    "for each of these calls the mean `elapsed_ms` of the requests sent to its host (of all hosts, if none was sent to it), or the open time left if that is less; waits are no part of it",
  "breaker.afterOpen.succeeded": "trial calls that closed a circuit, and first calls after a cooldown that succeeded",
  "breaker.afterOpen.failed": "trial calls that opened a circuit again, and first calls after a cooldown that failed",
  "breaker.afterOpen.successRate": "succeeded, divided by both",
  "breaker.hosts[].opens": "as `breaker.opens`, for this host or service",
  "breaker.hosts[].opensPerHour": "these, divided by the duration in hours",
  "breaker.hosts[].denied": "calls to this host that a breaker refused",
  "breaker.hosts[].timeSavedMs": "as `breaker.timeSavedMs`, for this host",
  "shadow.waits": "`ratelimit.shadow` events with `would` `wait`: requests that enforcing would have delayed",
  "shadow.waitMs": "the sum of their `wait_ms`; a wait for a slot is not known and counts 0",
  "shadow.limiterRefusals": "`ratelimit.shadow` events with `would` `refuse`",
  "shadow.breakerRefusals": "`breaker_shadow` events: calls that an open circuit or cooldown would have refused",
  "shadow.hosts[].*": "the same, for this host or service",
  "decisions[].waits":
    "`http_attempt` events and refused calls with this `decided_by` that waited: most of the wait was for this setting",
  "decisions[].waitMs": "the sum of these waits, without the jitter of trial calls",
  "decisions[].refusals": "refused calls with this `decided_by`, background refreshes included",
  "hosts[].calls":
    "calls that ended at this host; after redirects that the hub has followed, this is not the host that was called",
  "hosts[].outcomes.*": "these calls by outcome",
  "hosts[].refreshes": "background refreshes at this host",
  "hosts[].attempts": "requests sent to this host",
  "hosts[].connectFailures": "attempts at this host without a connection",
  "hosts[].answers429": "responses of this host with status 429",
  "hosts[].answers503": "responses of this host with status 503",
  "hosts[].delayMs.*": "waits before attempts at this host, and waits at it without an attempt",
  "hosts[].slotWaitMs": "the part of these waits that was spent on concurrency slots",
  "keys[].acquired": "as `limiter.acquired`, for this key and role",
  "keys[].blocked": "as `limiter.blocked`, for this key and role",
  "keys[].aborted": "`ratelimit.acquire` events with outcome `aborted`: callers that left the queue",
  "keys[].headSkipped": "as `limiter.headSkipped`, for this key and role",
  "keys[].multiplier": "`new` of the last `aimd_adjust` event; 1 without one",
  "keys[].leastMultiplier": "the lowest `new` of all `aimd_adjust` events; 1 without one",
  "topByDelay[].value": "the ten hosts with the highest `delayMs.total` over all roles",
  "topByBlocks[].value": "the ten keys with the most refusals over all roles",
};
