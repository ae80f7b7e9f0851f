import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type RateWindow, timeFor, unitsIn } from "./window-time.ts";

/** Sends each unit as early as the windows permit, one after the other. */
function simulated(units: number, windows: readonly RateWindow[]): number {
  const sentMs: number[] = [];
  for (let index = 0; index < units; index += 1) {
    let atMs = sentMs[index - 1] ?? 0;
    for (const { limit, windowMs } of windows) {
      const before = sentMs[index - limit];
      if (before !== undefined) atMs = Math.max(atMs, before + windowMs);
    }
    sentMs.push(atMs);
  }
  return sentMs.at(-1) ?? 0;
}

const SECOND = 1000;
const HOUR = 3_600_000;

test("the time of one window is exact", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 1, max: 60 }), (units, limit) => {
      const windows = [{ limit, windowMs: SECOND }];
      assert.equal(timeFor(units, windows), simulated(units, windows));
    }),
  );
});

test("the time of a limit per second and one per hour is exact", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 900 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 20, max: 300 }),
      (units, perSecond, perHour) => {
        const windows = [
          { limit: perSecond, windowMs: SECOND },
          { limit: perHour, windowMs: HOUR },
        ];
        assert.equal(timeFor(units, windows), simulated(units, windows));
      },
    ),
  );
  assert.equal(
    timeFor(120, [
      { limit: 1, windowMs: SECOND },
      { limit: 50, windowMs: HOUR },
    ]),
    2 * HOUR + 19 * SECOND,
  );
});

test("as many units as the windows permit within a time take no longer than it", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 1, max: 20 }), (ms, limit) => {
      const windows = [{ limit, windowMs: SECOND }];
      const units = unitsIn(ms, windows);
      assert.ok(timeFor(units, windows) <= ms);
      assert.ok(timeFor(units + 1, windows) > ms);
    }),
  );
});
