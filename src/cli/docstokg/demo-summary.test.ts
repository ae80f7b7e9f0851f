import assert from "node:assert/strict";
import { test } from "node:test";
import { type DemoFacts, demoText } from "./demo-summary.ts";
import type { ScheduleBound } from "./fastest-schedule.ts";
import { RunCounts } from "./run-counts.ts";

function factsWith(bound: ScheduleBound | undefined, rejected = 0): DemoFacts {
  const host = { requests: 8, rejected, statuses: { "200": 7, "429": 1 + rejected } };
  return {
    outcome: {
      counts: new RunCounts(),
      report: { works: { done: 19, failed: 1 }, files: { count: 19, bytes: 1_900_000 }, reasons: [] },
      elapsedMs: 14_000,
    },
    comparison: { expected: 19, matching: 19, missing: [] },
    ledger: { requests: 112, rejected, blocked: 0, hosts: { "api.example.org": host } },
    bound,
    folder: undefined,
  } as unknown as DemoFacts;
}

const BOUND: ScheduleBound = {
  budget: "service hal-api (metadata)",
  rates: "1/SECOND",
  requests: 8,
  fastestMs: 7000,
  tookMs: 8140,
  runMs: 13_800,
};

test("the demo's text has the duration, the minimum under the limits, their ratio and the rejections, in this order", () => {
  const text = demoText(factsWith(BOUND));
  assert.ok(
    text.includes(
      "duration   14 s\n" +
        "minimum    7.0 s: service hal-api (metadata) allows 1/SECOND, so its 8 requests take at least this time\n" +
        "ratio      2.00 times the minimum for the whole run, which also waits for the simulated outage; " +
        "1.16 times for these 8 requests, sent in 8.1 s\n" +
        "rejected   0 requests for an exceeded rate limit; the simulated throttling answered 1 request with 429\n",
    ),
    text,
  );
});

test("a demo with too few requests to reach a limit has no ratio", () => {
  const text = demoText(factsWith({ ...BOUND, requests: 1, fastestMs: 0, tookMs: 0 }));
  assert.match(
    text,
    /^duration {3}14 s\nminimum {4}none: the run had too few requests to reach a rate limit\nrejected /m,
  );
});

test("the demo's text names the hosts that rejected a request", () => {
  assert.match(demoText(factsWith(undefined, 2)), /^rejected {3}2 requests \(api\.example\.org\) for an exceeded/m);
});
