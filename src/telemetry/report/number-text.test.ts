import assert from "node:assert/strict";
import { test } from "node:test";
import { clockOf, countOf, durationOf, momentOf, percentOf, plainText, rateOf } from "./number-text.ts";

test("durations use two units at most, and never 60 of a unit", () => {
  const said = [
    [0, "0 ms"],
    [0.25, "0.3 ms"],
    [9.96, "10 ms"],
    [340.4, "340 ms"],
    [999.4, "999 ms"],
    [999.5, "1 s"],
    [1249, "1.2 s"],
    [9949, "9.9 s"],
    [9950, "10 s"],
    [59_499, "59 s"],
    [59_500, "1 min"],
    [200_000, "3 min 20 s"],
    [3_599_499, "59 min 59 s"],
    [3_599_500, "1 h"],
    [7_500_000, "2 h 5 min"],
    [273_600_000, "3 d 4 h"],
  ] as const;
  for (const [ms, words] of said) assert.equal(durationOf(ms), words, String(ms));
});

test("small percentages keep their significant digits", () => {
  assert.deepEqual([0, 0.0004, 0.0123, 0.09, 0.5, 1].map(percentOf), [
    "0 %",
    "0.04 %",
    "1.2 %",
    "9 %",
    "50 %",
    "100 %",
  ]);
  assert.equal(countOf(1_234_567), "1,234,567");
});

test("a percentage is rounded before its digits are chosen, and only nothing is 0 % and everything 100 %", () => {
  assert.deepEqual([0.0999, 0.0994, 0.00996, 0.07, 0.9997, 0.994, 0.00001].map(percentOf), [
    "10 %",
    "9.9 %",
    "1 %",
    "7 %",
    "> 99 %",
    "99 %",
    "< 0.01 %",
  ]);
});

test("a rate below one per minute is given per hour", () => {
  const hourMs = 3_600_000;
  assert.deepEqual(
    [rateOf(72, 71 * hourMs), rateOf(30, 3 * hourMs), rateOf(90, hourMs), rateOf(0, hourMs), rateOf(5, 0)],
    ["1 per hour", "10 per hour", "2 per minute", "0 per hour", "0 per hour"],
  );
});

test("times are UTC, with the precision of the steps, and an invalid time does not throw", () => {
  const ms = Date.UTC(2026, 10, 16, 2, 3, 4, 5);
  assert.equal(momentOf(ms), "2026-11-16 02:03:04");
  assert.deepEqual(
    [1, 1000, 60_000, 86_400_000].map(step => clockOf(ms, step)),
    ["02:03:04.005", "02:03:04", "02:03", "2026-11-16"],
  );
  assert.match(momentOf(1e300), /^\+275760-09-13/);
});

test("control and direction characters are replaced by a dot", () => {
  assert.equal(plainText("a\u001b[1mb\u202ec\nd"), "a·[1mb·c·d");
});
