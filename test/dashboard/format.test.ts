import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { DashboardState, SeriesPoint } from "../../src/dashboard/dashboard-state.ts";
import { chartRange } from "../../web/chart-range.ts";
import { bytes, duration } from "../../web/format.ts";
import { exampleSource } from "./example-source.ts";

test("a duration in the page never has 60 seconds or minutes beside a larger unit", () => {
  assert.deepEqual([340, 999.6, 4200, 9960, 59_600, 2_819_700, 3_599_800, 7_500_000].map(duration), [
    "340 ms",
    "1.0 s",
    "4.2 s",
    "10 s",
    "1 min 0 s",
    "47 min 0 s",
    "1 h 0 min",
    "2 h 5 min",
  ]);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 4e8, noNaN: true }), ms => {
      assert.doesNotMatch(duration(ms), /\b60 (?:s|min)|\b1000 ms/);
    }),
  );
});

test("an amount of bytes in the page never has 1000 of a unit that has a larger one", () => {
  assert.deepEqual([0, 999, 1000, 99_940, 999_499, 999_500, 999_950_000, 2e15].map(bytes), [
    "0 B",
    "999 B",
    "1.0 kB",
    "99.9 kB",
    "999 kB",
    "1.0 MB",
    "1.0 GB",
    "2000 TB",
  ]);
  fc.assert(fc.property(fc.nat(1e14), value => assert.doesNotMatch(bytes(value), /^1000\b/)));
});

test("the charts of a run end with its last point if it was killed or has ended, and now if it runs", async () => {
  const source = exampleSource();
  const { run, ...state } = await source.read();
  const about: DashboardState["about"] = {
    ...{ ...source.about, kind: "run", actions: [], canAsk: false, actionToken: "" },
  };
  const points = [0, 100_000].map(
    (atMs): SeriesPoint => ({ atMs, requests: 1, waitMs: 0, throttles: 0, hits: 0, failures: 0, refused: 0 }),
  );
  const series = { stepMs: 1000, points };
  const nowMs = 3 * 86_400_000;
  const rangeIn = (name: string, endedMs: number | null) =>
    chartRange({ ...state, about, series, run: run && { ...run, state: name, endedMs } }, points, nowMs);
  const complete = { fromMs: 0, toMs: 102_000, stepMs: 1000 };
  assert.deepEqual(rangeIn("stopped", null), complete);
  assert.deepEqual(rangeIn("ended", 101_000), complete);
  assert.deepEqual(rangeIn("running", null), { ...complete, toMs: nowMs + 1000 });
});
