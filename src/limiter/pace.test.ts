import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_GUARD_US } from "../core/limits/guard.ts";
import { makeWindow } from "../core/limits/window-log.ts";
import { Pace } from "./pace.ts";

const S = 1_000_000;
const aimd = {
  enabled: true,
  windowUs: 60 * S,
  highRatio: 0.05,
  increase: 0.05,
  decrease: 0.2,
  minMultiplier: 0.3,
  maxMultiplier: 1,
};

test("one 429 that is counted and not yet summed up is not forgotten, even where nothing else could change", () => {
  const policy = {
    rates: [{ limit: 10, windowUs: S }],
    guardUs: MAX_GUARD_US,
    spacingUs: 125_000,
    windows: [makeWindow(10, S + MAX_GUARD_US)],
    labels: ["10/SECOND"],
    maxConcurrent: 1,
    sharesSlots: false,
  };
  const pace = new Pace(policy, aimd, 0);
  assert.equal(pace.isNeutral(0), true);
  assert.deepEqual(pace.record(true, 0), [], "as wide and as smooth as can be");
  assert.equal(pace.isNeutral(60 * S), false);
  pace.tick(60 * S);
  assert.equal(pace.isNeutral(60 * S), true, "one call proves nothing");
});
