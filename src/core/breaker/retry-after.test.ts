import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRetryAfterMs } from "./retry-after.ts";

const at = { wallMs: Date.UTC(2026, 10, 1, 12, 0, 0) };
const inTenSeconds = "Sun, 01 Nov 2026 12:00:10 GMT";

test("a whole number is a delay in seconds", () => {
  assert.equal(parseRetryAfterMs("4", at), 4000);
  assert.equal(parseRetryAfterMs("2000", at), 2_000_000);
  assert.equal(parseRetryAfterMs(" 59\t", at), 59_000);
  assert.equal(parseRetryAfterMs("007", at), 7000);
});

test("a fraction of a second is accepted and rounded up to the millisecond", () => {
  assert.equal(parseRetryAfterMs("1.5", at), 1500);
  assert.equal(parseRetryAfterMs("0.0001", at), 1);
  assert.equal(parseRetryAfterMs("1.0010", at), 1001);
  assert.equal(parseRetryAfterMs("1.0010001", at), 1002);
});

test("every decimal with three places is converted exactly", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000_000 }), ms => {
      assert.equal(parseRetryAfterMs((ms / 1000).toFixed(3), at), ms);
    }),
  );
});

test("a date is measured against the response's own Date", () => {
  const responseDate = "Sun, 01 Nov 2026 11:59:40 GMT";
  assert.equal(parseRetryAfterMs(inTenSeconds, { ...at, responseDate }), 30_000);
  assert.equal(parseRetryAfterMs(inTenSeconds, { ...at, responseDate: ` ${responseDate} ` }), 30_000);
  assert.equal(parseRetryAfterMs("Sunday, 01-Nov-26 12:00:10 GMT", { ...at, responseDate }), 30_000);
  assert.equal(parseRetryAfterMs("Sun Nov  1 12:00:10 2026", { ...at, responseDate }), 30_000);
});

test("a date of a server whose clock is years off gives the intended delay", () => {
  const responseDate = "Thu, 01 Jan 1970 00:00:00 GMT";
  assert.equal(parseRetryAfterMs("Thu, 01 Jan 1970 00:00:05 GMT", { ...at, responseDate }), 5000);
  assert.equal(parseRetryAfterMs("Thursday, 01-Jan-70 00:00:05 GMT", { ...at, responseDate }), 5000);
});

test("without a valid Date the local clock decides, rounded up to the millisecond", () => {
  assert.equal(parseRetryAfterMs(inTenSeconds, at), 10_000);
  assert.equal(parseRetryAfterMs(inTenSeconds, { ...at, responseDate: "yesterday" }), 10_000);
  assert.equal(parseRetryAfterMs(inTenSeconds, { wallMs: at.wallMs + 0.25 }), 10_000);
});

test("an invalid date does not affect the other values", () => {
  assert.equal(parseRetryAfterMs(["4", inTenSeconds], { wallMs: Number.NaN }), 4000);
  assert.equal(parseRetryAfterMs(["4", "Sun, 01 Nov 2026 11:00:00 GMT"], at), 4000);
});

for (const [why, value] of [
  ["zero", "0"],
  ["zero with a fraction", "0.000"],
  ["a negative number", "-1"],
  ["a signed number", "+1"],
  ["an empty value", ""],
  ["a blank value", "  "],
  ["junk", "soon"],
  ["a unit", "5s"],
  ["an exponent", "1e3"],
  ["a bare point", "5."],
  ["hexadecimal", "0x10"],
  ["a past date", "Sun, 01 Nov 2026 11:59:59 GMT"],
  ["this very instant", "Sun, 01 Nov 2026 12:00:00 GMT"],
  ["an ISO date", "2026-11-01T12:00:10Z"],
  ["a day that does not exist", "Mon, 31 Nov 2026 12:00:10 GMT"],
] as const) {
  test(`a Retry-After of ${why} is ignored`, () => assert.equal(parseRetryAfterMs(value, at), undefined));
}

test("an absent field gives no delay", () => {
  assert.equal(parseRetryAfterMs(undefined, at), undefined);
  assert.equal(parseRetryAfterMs([], at), undefined);
});

test("a number with too many digits gives the largest safe integer", () => {
  assert.equal(parseRetryAfterMs("9".repeat(20), at), Number.MAX_SAFE_INTEGER);
  assert.equal(parseRetryAfterMs("9".repeat(256), at), Number.MAX_SAFE_INTEGER);
});

test("a value of more than 256 characters is ignored, the other values are not", () => {
  assert.equal(parseRetryAfterMs("9".repeat(257), at), undefined);
  assert.equal(parseRetryAfterMs("1,".repeat(1_000_000), at), undefined);
  assert.equal(parseRetryAfterMs(["9".repeat(257), "3"], at), 3000);
});

test("the longest of several valid values wins", () => {
  assert.equal(parseRetryAfterMs(["4", "junk", "30", "0"], at), 30_000);
  assert.equal(parseRetryAfterMs(["4", inTenSeconds], at), 10_000);
});

test("values that a proxy or Headers joined with commas are read one by one", () => {
  assert.equal(parseRetryAfterMs("4, 30", at), 30_000);
  assert.equal(parseRetryAfterMs(`4, ${inTenSeconds}`, at), 10_000);
  assert.equal(parseRetryAfterMs(`${inTenSeconds}, 4`, at), 10_000);
  assert.equal(parseRetryAfterMs(`${inTenSeconds}, ${inTenSeconds}`, at), 10_000);
  assert.equal(parseRetryAfterMs(",,", at), undefined);
});

test("any value is a whole number of milliseconds above zero or nothing", () => {
  const part = fc.oneof(fc.string(), fc.constantFrom(inTenSeconds, "1", "0.1", ",", "-", "9".repeat(30)));
  const line = fc.array(part, { maxLength: 5 }).map(parts => parts.join(""));
  const date = fc.option(fc.oneof(fc.string(), fc.constant(inTenSeconds)), { nil: undefined });
  fc.assert(
    fc.property(fc.oneof(line, fc.array(line)), date, fc.double(), (value, responseDate, wallMs) => {
      const ms = parseRetryAfterMs(value, { responseDate, wallMs });
      assert.ok(ms === undefined || (Number.isSafeInteger(ms) && ms > 0));
    }),
    { numRuns: 2000 },
  );
});
