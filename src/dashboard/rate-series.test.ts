import assert from "node:assert/strict";
import { test } from "node:test";
import { acquire, attempt, call, START_MS } from "../../test/telemetry/kit.ts";
import { RateSeries } from "./rate-series.ts";

test("each step counts requests, throttles, hits, failures and refusals, and has its longest wait", () => {
  const series = new RateSeries({ stepMs: 1000, keepMs: 60_000 });
  series.take(attempt(100, "a.example", { rate_wait_ms: 40 }));
  series.take(attempt(200, "a.example", { rate_wait_ms: 20, status: 429, outcome: "throttled" }));
  series.take(attempt(1100, "a.example", { status: 500, outcome: "failed" }));
  series.take(attempt(1200, "a.example", { connection: "none", status: undefined, outcome: "failed" }));
  series.take(call(2100, "a.example", { from_cache: true, attempts: 0 }));
  series.take(acquire(2200, "a.example", "refused"));
  const points = series.since(0).map(({ atMs, ...counts }) => ({ atMs: atMs - START_MS, ...counts }));
  assert.deepEqual(points, [
    { atMs: 0, requests: 2, waitMs: 40, throttles: 1, hits: 0, failures: 0, refused: 0 },
    { atMs: 1000, requests: 1, waitMs: 0, throttles: 0, hits: 0, failures: 2, refused: 0 },
    { atMs: 2000, requests: 0, waitMs: 0, throttles: 0, hits: 1, failures: 0, refused: 1 },
  ]);
});

test("old steps are forgotten, and a clock that steps back adds to the latest step", () => {
  const series = new RateSeries({ stepMs: 1000, keepMs: 10_000 });
  for (let second = 0; second < 100; second += 1) series.add("requests", 1, second * 1000);
  assert.ok(series.since(0).length <= 20);
  series.add("requests", 1, 5000);
  assert.deepEqual(
    series.since(99_000).map(({ requests }) => requests),
    [2],
  );
});
