import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FailureWindow } from "./failure-window.ts";

const S = 1_000_000;

test("three failures within ten seconds reach a threshold of three, three within eleven do not", () => {
  const close = new FailureWindow();
  assert.deepEqual(
    [0, 4, 9].map(second => close.add(second * S, 3, 10 * S)),
    [false, false, true],
  );
  const apart = new FailureWindow();
  assert.deepEqual(
    [0, 5, 11].map(second => apart.add(second * S, 3, 10 * S)),
    [false, false, false],
  );
});

test("the count restarts after the threshold was reached", () => {
  const window = new FailureWindow();
  for (const us of [0, 1, 2]) window.add(us, 3, 10 * S);
  assert.equal(window.count(2, 10 * S), 0);
  assert.equal(window.add(3, 3, 10 * S), false);
});

test("a threshold that calls which never reached the host are needed for is reached alone", () => {
  const window = new FailureWindow();
  assert.deepEqual(
    [true, false, false].map(isUnreached => window.add(0, 3, 10 * S, isUnreached)),
    [false, false, "alone"],
  );
  assert.deepEqual(
    [false, false, false].map(isUnreached => window.add(0, 3, 10 * S, isUnreached)),
    [false, false, true],
  );
});

test("a threshold of one is reached by the first failure", () => {
  assert.equal(new FailureWindow().add(5, 1, 1), true);
});

test("the threshold is reached exactly when a plain count of failures says so", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 30 }),
      (gaps, threshold, windowUs) => {
        const window = new FailureWindow();
        let times: number[] = [];
        let nowUs = 0;
        for (const gap of gaps) {
          nowUs += gap;
          times.push(nowUs);
          const inside = times.filter(us => us > nowUs - windowUs).length;
          const expected = inside >= threshold;
          assert.equal(window.add(nowUs, threshold, windowUs), expected);
          if (expected) times = [];
          else assert.equal(window.count(nowUs, windowUs), inside);
        }
      },
    ),
    { numRuns: 1000 },
  );
});
