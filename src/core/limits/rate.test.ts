import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatRates, MAX_COST_LIMIT, parseDurationMs, parseRateMap, parseRates, type Rate } from "./rate.ts";

const ms = (limit: number, windowMs: number): Rate => ({ limit, windowUs: windowMs * 1000 });

test("a rate is a count and a window, in any spelling of its unit", () => {
  assert.deepEqual(parseRates("8/second"), [ms(8, 1000)]);
  assert.deepEqual(parseRates("2/minute"), [ms(2, 60_000)]);
  assert.deepEqual(parseRates("120/hour"), [ms(120, 3_600_000)]);
  assert.deepEqual(parseRates("1/3SECOND"), [ms(1, 3000)]);
  for (const text of ["7/s", "7/sec", "7/second", "7/seconds", "7/S", "7/Sec", "7/1second", "7/1000ms"]) {
    assert.deepEqual(parseRates(text), [ms(7, 1000)], text);
  }
  for (const text of ["7/m", "7/min", "7/MINUTES"]) assert.deepEqual(parseRates(text), [ms(7, 60_000)], text);
  for (const text of ["7/h", "7/hours"]) assert.deepEqual(parseRates(text), [ms(7, 3_600_000)], text);
  for (const text of ["7/d", "7/DAY", "7/days"]) assert.deepEqual(parseRates(text), [ms(7, 86_400_000)], text);
});

test("a duration has the units of rates, and is in seconds without one", () => {
  for (const [text, durationMs] of [
    ["90s", 90_000],
    ["5min", 300_000],
    ["2 H", 7_200_000],
    [" 1 day ", 86_400_000],
    ["1.5", 1500],
    ["250ms", 250],
  ] as const)
    assert.equal(parseDurationMs(text), durationMs, text);
  for (const text of ["", "s", "5 parsecs", "-1s", "1,5s"]) assert.equal(parseDurationMs(text), undefined, text);
});

test("the largest count, window and text are valid", () => {
  const [widest] = parseRates("1000000000/366d");
  assert.deepEqual(widest, ms(1_000_000_000, 366 * 86_400_000));
  assert.throws(() => parseRates("1/367d"), /from 1 ms to 366 days/);
  assert.throws(() => parseRates("1000000001/s"), /from 1 to/);
  assert.equal(parseRates(`1/s${" ".repeat(997)}`).length, 1);
  assert.deepEqual(parseRates("1000000000000/s", MAX_COST_LIMIT), [ms(1e12, 1000)]);
  assert.throws(() => parseRates("1000000000001/s", MAX_COST_LIMIT), /from 1 to 1000000000000/);
});

test("windows are joined by a plus or listed", () => {
  const both = [ms(10, 1000), ms(5000, 3_600_000)];
  assert.deepEqual(parseRates("10/SECOND+5000/HOUR"), both);
  assert.deepEqual(parseRates(" 10/SECOND + 5000/HOUR "), both);
  assert.deepEqual(parseRates(["10/SECOND", "5000/HOUR"]), both);
});

test("a list of names and rates is parsed to a map", () => {
  assert.deepEqual(
    [...parseRateMap("a:4/second;b:2/second")],
    [
      ["a", [ms(4, 1000)]],
      ["b", [ms(2, 1000)]],
    ],
  );
  assert.deepEqual([...parseRateMap(" a : 4/s ; ").keys()], ["a"]);
  assert.equal(parseRateMap("").size, 0);
  assert.deepEqual([...parseRateMap("a: none")], [["a", []]]);
});

test("an invalid rate is an error that names the input and the valid form", () => {
  for (const text of [
    "8",
    "0/second",
    "-1/s",
    "x/s",
    "8/fortnight",
    "5/second junk",
    "",
    "+",
    "8/s+",
    "1.5/s",
    "8/0s",
    "8/",
    "/s",
  ]) {
    assert.throws(
      () => parseRates(text),
      (error: Error) =>
        error instanceof RangeError &&
        error.message.includes(JSON.stringify(text)) &&
        error.message.includes("10/SECOND"),
      text,
    );
  }
  assert.throws(() => parseRates([]), RangeError);
  assert.throws(() => parseRates("8"), /^RangeError: "8" is not a rate; write/);
  assert.throws(() => parseRates("1/s+8"), /^RangeError: "8" in "1\/s\+8" is not a rate; write/);
  assert.throws(() => parseRates("8/400days"), /from 1 ms to 366 days/);
  assert.throws(() => parseRates("9999999999/s"), /from 1 to 1000000000/);
  assert.throws(() => parseRates("9".repeat(2000)), /2000 characters, at most 1000 are allowed/);
});

test("an entry without a name, a duplicate name and an invalid rate are errors", () => {
  assert.throws(() => parseRateMap("4/second"), /"4\/second" is not <name>:<rate>/);
  assert.throws(() => parseRateMap(":4/second"), /is not <name>:<rate>/);
  assert.throws(() => parseRateMap("a:4/second;a:5/second"), /duplicate name "a" in/);
  assert.throws(() => parseRateMap("a:4"), /"4" is not a rate/);
});

test("a rate is formatted in its largest whole unit", () => {
  const shown = ["10/1s", "1/3s", "300/60s", "5000/60min", "9/48h", "30/100ms", "2/90s"].map(text =>
    formatRates(parseRates(text)),
  );
  assert.deepEqual(shown, ["10/SECOND", "1/3SECOND", "300/MINUTE", "5000/HOUR", "9/2DAY", "30/100MS", "2/90SECOND"]);
});

test("a formatted rate is parsed to the same windows", () => {
  const rate = fc.record({
    limit: fc.integer({ min: 1, max: 1e9 }),
    windowMs: fc.integer({ min: 1, max: 366 * 86_400_000 }),
  });
  fc.assert(
    fc.property(fc.array(rate, { minLength: 1, maxLength: 4 }), list => {
      const rates = list.map(({ limit, windowMs }) => ms(limit, windowMs));
      assert.deepEqual(parseRates(formatRates(rates)), rates);
    }),
  );
});

test("no text makes the parsers throw anything but a RangeError", () => {
  const pieces = fc.constantFrom("8", "/", "+", ";", ":", "s", "SECOND", "min", " ", "-", "é", "0", "3", ".");
  const text = fc.oneof(
    fc.string(),
    fc.array(pieces, { maxLength: 30 }).map(list => list.join("")),
  );
  fc.assert(
    fc.property(text, input => {
      for (const parse of [parseRates, parseRateMap]) {
        try {
          parse(input);
        } catch (error) {
          assert.ok(error instanceof RangeError);
        }
      }
    }),
    { numRuns: 2000 },
  );
});
