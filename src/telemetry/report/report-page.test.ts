import assert from "node:assert/strict";
import { test } from "node:test";
import { at, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import type { TelemetryEvent } from "../events.ts";
import { RunTally } from "../summary/run-tally.ts";
import { reportPage } from "./report-page.ts";

function pageOf(events: Iterable<TelemetryEvent>): string {
  const tally = new RunTally(RUN);
  for (const event of events) tally.take(event);
  return reportPage(tally.summary(), tally.timeline(), { unreadable: 0, unknown: 0 });
}

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
