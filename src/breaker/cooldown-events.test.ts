import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import type { BreakerEvent } from "./breaker-events.ts";

/** The events about cooldowns: the reason and the end of each, in ms after `fromMs`. */
function cooldownsOf(events: readonly BreakerEvent[], fromMs: number) {
  return events.flatMap(event => {
    if (event.event_type === "breaker_cooldown_set") return [`${event.reason} until ${event.until - fromMs}`];
    return event.event_type === "breaker_cooldown_ended" ? [`ended by ${event.by}`] : [];
  });
}

test("an operator's order that ends before a running Retry-After does not shorten it in the events", () => {
  const { time, events, registry, answer } = setUp();
  answer(429, {}, 60_000);
  registry.open(host, 10, "maintenance");
  assert.deepEqual(cooldownsOf(events, time.wallMs()), [
    "retry-after until 60000",
    "cli-open:maintenance until 10000",
    "retry-after until 60000",
  ]);
});

test("a Retry-After that ends before an operator's order does not shorten it in the events", () => {
  const { time, events, registry } = setUp();
  const permit = registry.allow({ host });
  registry.open(host, 300, "maintenance");
  permit.report({ outcome: outcomeOfResponse({ status: 429 }), status: 429, retryAfterMs: 10_000 });
  assert.deepEqual(cooldownsOf(events, time.wallMs()), [
    "cli-open:maintenance until 300000",
    "retry-after until 10000",
    "cli-open:maintenance until 300000",
  ]);
  registry.close(host);
  assert.equal(cooldownsOf(events, time.wallMs()).at(-1), "ended by operator");
});
