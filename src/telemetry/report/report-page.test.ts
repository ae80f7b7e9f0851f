import assert from "node:assert/strict";
import { test } from "node:test";
import { at, attempt, call, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import type { TelemetryEvent } from "../events.ts";
import { RunTally } from "../summary/run-tally.ts";
import { reportPage } from "./report-page.ts";

function pageOf(events: Iterable<TelemetryEvent>): string {
  const tally = new RunTally(RUN);
  for (const event of events) tally.take(event);
  return reportPage(tally.summary(), tally.timeline(), { unreadable: 0, unknown: 0 });
}

test("every time in the page of a run of several days has its day", () => {
  const hourMs = 3_600_000;
  const host = "a.example";
  const calls = Array.from({ length: 72 }, (_, hour) => call(hour * hourMs, host));
  const until = START_MS + 50 * hourMs;
  const page = pageOf([
    ...calls.slice(0, 48),
    at(47.5 * hourMs, "breaker_cooldown_set", { host, until, reason: "retry-after" }),
    ...calls.slice(48),
  ]);
  const rows = [...page.slice(page.indexOf("The same as a table")).matchAll(/<th scope="row">(\d[^<]*)/g)];
  const tips = [...page.matchAll(/(?:<title>|\n)(\d[^<\n]*) UTC/g)];
  assert.ok(rows.length > 20 && tips.length > 72);
  for (const [, time] of [...rows, ...tips]) assert.match(time ?? "", /^11-1[4-7] \d\d:\d\d(:\d\d)?$/);
});

test("the page counts every host, and the throttles of the hosts that are charted together", () => {
  const hosts = Array.from({ length: 300 }, (_, index) => `host-${index}.example`);
  const page = pageOf([
    ...hosts.map((host, ms) => call(ms, host)),
    ...[300, 301, 302].flatMap(ms => [
      attempt(ms, "host-299.example", { status: 429, outcome: "throttled" }),
      call(ms, "host-299.example", { status: 429 }),
    ]),
  ]);
  assert.match(
    page,
    /Shown are the 16 charts with the most calls; the run has 300 hosts\. Only the first 256 hosts have a chart of their own\./,
  );
  assert.match(page, /<h3>\(other hosts\)<\/h3><p>47 calls<\/p><p>3 × 429 or 503<\/p>/);
});

test("periods of a host that overlap count once in the time that it was open or in cooldown", () => {
  const host = "a.example";
  const opening = { host, old: "closed", new: "open", reset_timeout_s: 60, last_rate_delay_ms: undefined } as const;
  const page = pageOf([
    at(0, "breaker_state_change", { ...opening, role: "metadata" }),
    at(0, "breaker_state_change", { ...opening, role: "landing" }),
    at(30_000, "breaker_cooldown_set", { host, until: START_MS + 80_000, reason: "retry-after" }),
    at(90_000, "breaker_cooldown_set", { host, until: START_MS + 95_000, reason: "retry-after" }),
    at(100_000, "run_ended", {}),
  ]);
  assert.match(page, /<p>open or in cooldown for 1 min 25 s<\/p>/);
});
