import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { BREAKERS, fleetOf, HOST, REREAD_MS } from "../../test/sharing/fleet.ts";
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

/** The reasons of the cooldowns that a process reports, those that another process has set with "of a peer". */
function originsOf(events: readonly BreakerEvent[]) {
  return events.flatMap(event => {
    if (event.event_type !== "breaker_cooldown_set") return [];
    return event.from_peer === true ? `${event.reason} of a peer` : event.reason;
  });
}

test("an order of a peer that is reported again after a shorter Retry-After is still that of a peer", async () => {
  const { time, a, operator } = fleetOf(2);
  const events: BreakerEvent[] = [];
  a.breakers.listen(event => events.push(event));
  const grant = await a.gate.enter({ host: HOST, role: "metadata" });
  grant.written();
  await operator.order({ unit: HOST }, { kind: "open", ms: 300_000, reason: "cli-open:x", isReplacing: false });
  await time.advance(REREAD_MS);
  assert.equal(await a.send("success"), "cli-open:x");
  const outcome = { kind: "failure", cause: "status", throttled: true } as const;
  grant.report({ outcome, status: 429, retryAfterMs: 10_000 });
  assert.deepEqual(originsOf(events), ["cli-open:x of a peer", "retry-after", "cli-open:x of a peer"]);
});

test("a cooldown that the failures of all processes start is never that of a peer for the process that has counted the last", async () => {
  const rolling_window = { enabled: true, window_s: 60, threshold_failures: 4, cooldown_s: 30 };
  const defaults = { ...BREAKERS.defaults, fail_max: 9, roles: {} };
  const { time, a, b } = fleetOf(2, { ...BREAKERS, defaults, advanced: { ...BREAKERS.advanced, rolling_window } });
  const events: BreakerEvent[] = [];
  a.breakers.listen(event => events.push(event));
  for (const process of [b, b, a, a]) {
    await process.send("failure");
    await time.advance(REREAD_MS);
  }
  a.breakers.open(HOST, 10, "x");
  assert.deepEqual(originsOf(events), ["rolling-window", "cli-open:x", "rolling-window"]);
});
