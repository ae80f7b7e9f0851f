import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsPage, metricsPage } from "../../scripts/reference/events.ts";
import { EVENT_SPECS } from "../../src/telemetry/event-fields.ts";
import { exportedName, METRICS, type MetricName } from "../../src/telemetry/metrics.ts";

test("the reference lists every event, field and metric of the code", () => {
  const [events, metrics] = [eventsPage(), metricsPage()];
  for (const type of Object.keys(EVENT_SPECS)) assert.ok(events.includes(`## \`${type}\``), type);
  for (const name of Object.keys(METRICS) as MetricName[])
    assert.ok(metrics.includes(`| \`${exportedName(name)}\` |`), name);
});

/** The documented names; reports and dashboards of users depend on them. */
const PROMISED = {
  "ratelimit.acquire": ["key", "rates", "weight", "mode", "blocked_ms", "outcome"],
  "ratelimit.cooldown": ["key", "seconds"],
  rate_head_skipped: [],
  aimd_adjust: ["host", "role", "old", "new", "reason"],
  limit_learned: [],
  breaker_before_call: [],
  breaker_success: [],
  breaker_failure: [],
  breaker_state_change: ["old", "new", "reset_timeout_s", "last_rate_delay_ms"],
  breaker_cooldown_set: ["until", "reason"],
  http_request: [
    ...["host", "role", "method", "status", "from_cache", "revalidated", "stale", "coalesced", "attempts"],
    ...["retry_after_s", "rate_delay_ms", "rate_concurrency_wait_ms", "breaker_host_state", "breaker_resolver_state"],
    ...["breaker_open_remaining_ms", "breaker_recorded", "elapsed_ms", "url_hash"],
  ],
} as const;

test("the documented event fields and metric names exist", () => {
  for (const [type, fields] of Object.entries(PROMISED) as [keyof typeof PROMISED, readonly string[]][]) {
    const known = Object.keys(EVENT_SPECS[type].fields);
    assert.deepEqual(
      fields.filter(field => !known.includes(field)),
      [],
      type,
    );
  }
  const metrics = [
    ...["rate_delay_ms", "rate_acquired_total", "rate_blocked_total", "rate_head_skipped_total"],
    ...["rate_concurrency_wait_ms", "http_429_total", "http_503_total", "breaker_open_total"],
  ];
  assert.deepEqual(
    metrics.filter(name => !Object.hasOwn(METRICS, name)),
    [],
  );
});
