import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseHttpDate } from "./http-date.ts";

const in2026 = Date.UTC(2026, 10, 1);
const example = Date.UTC(1994, 10, 6, 8, 49, 37);

test("the three forms of the standard name the same instant", () => {
  assert.equal(parseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT", in2026), example);
  assert.equal(parseHttpDate("Sunday, 06-Nov-94 08:49:37 GMT", in2026), example);
  assert.equal(parseHttpDate("Sun Nov  6 08:49:37 1994", in2026), example);
  for (const text of ["sun, 06 nov 1994 08:49:37 gmt", "SUNDAY, 06-NOV-94 08:49:37 GMT", "sUN nOV  6 08:49:37 1994"])
    assert.equal(parseHttpDate(text, in2026), example, text);
  assert.equal(parseHttpDate("Wed Nov 16 08:49:37 1994", in2026), Date.UTC(1994, 10, 16, 8, 49, 37));
});

test("the weekday must be a valid name, but may be the wrong one", () => {
  assert.equal(parseHttpDate("Mon, 06 Nov 1994 08:49:37 GMT", in2026), example);
  assert.equal(parseHttpDate("Foo, 06 Nov 1994 08:49:37 GMT", in2026), undefined);
  assert.equal(parseHttpDate("Sun, 06-Nov-94 08:49:37 GMT", in2026), undefined);
  assert.equal(parseHttpDate("Sunday, 06 Nov 1994 08:49:37 GMT", in2026), undefined);
});

test("every weekday and every month is parsed in each form", () => {
  for (let day = 1; day <= 7; day++) {
    for (let month = 0; month < 12; month++) {
      const at = new Date(Date.UTC(2023, month, day, 1, 2, 3));
      for (const form of [imfFixdate, rfc850, asctime]) assert.equal(parseHttpDate(form(at), in2026), at.getTime());
    }
  }
});

test("a leap second is the first second of the next minute", () => {
  assert.equal(parseHttpDate("Sat, 31 Dec 2016 23:59:60 GMT", in2026), Date.UTC(2017, 0, 1));
});

for (const text of [
  "",
  "0",
  "2",
  "1994-11-06T08:49:37Z",
  "Sun, 06 Nov 1994 08:49:37",
  "Sun, 06 Nov 1994 08:49:37 UTC",
  "Sun, 06 Nov 1994 08:49:37 GMT ",
  " Sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 GMT\n",
  "Sun, 6 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 94 08:49:37 GMT",
  "Sun, 06 Foo 1994 08:49:37 GMT",
  "Sun, 06 an| 1994 08:49:37 GMT",
  "Sun, 00 Nov 1994 08:49:37 GMT",
  "Sun, 31 Nov 1994 08:49:37 GMT",
  "Sun, 32 Dec 1994 08:49:37 GMT",
  "Sun, 29 Feb 1994 08:49:37 GMT",
  "Sun, 29 Feb 1900 08:49:37 GMT",
  "Sun, 30 Feb 2000 08:49:37 GMT",
  "Sun, 06 Nov 1994 24:00:00 GMT",
  "Sun, 06 Nov 1994 08:60:00 GMT",
  "Sun, 06 Nov 1994 08:49:61 GMT",
  "Sun Nov 06 08:49:37 1994 GMT",
  "Sun Nov    08:49:37 1994",
  "Tuesday, 29-Feb-94 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 GMT".repeat(100_000),
]) {
  test(`${JSON.stringify(text.slice(0, 40))} is not a date`, () => {
    assert.equal(parseHttpDate(text, in2026), undefined);
  });
}

test("29 February exists in 2000 and in 2024", () => {
  assert.equal(parseHttpDate("Tue, 29 Feb 2000 00:00:00 GMT", in2026), Date.UTC(2000, 1, 29));
  assert.equal(parseHttpDate("Thu, 29 Feb 2024 00:00:00 GMT", in2026), Date.UTC(2024, 1, 29));
});

test("a two-digit year lies at most fifty years ahead, to the second", () => {
  const reference = Date.UTC(2026, 10, 1, 12, 0, 0);
  assert.equal(parseHttpDate("Sunday, 01-Nov-76 12:00:00 GMT", reference), Date.UTC(2076, 10, 1, 12, 0, 0));
  assert.equal(parseHttpDate("Sunday, 01-Nov-76 12:00:01 GMT", reference), Date.UTC(1976, 10, 1, 12, 0, 1));
  assert.equal(parseHttpDate("Sunday, 01-Nov-99 12:00:00 GMT", reference), Date.UTC(1999, 10, 1, 12, 0, 0));
  assert.equal(parseHttpDate("Sunday, 01-Nov-05 12:00:00 GMT", Date.UTC(2090, 0)), Date.UTC(2105, 10, 1, 12, 0, 0));
});

test("an invalid reference makes only a two-digit year invalid", () => {
  for (const reference of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    assert.equal(parseHttpDate("Sunday, 06-Nov-94 08:49:37 GMT", reference), undefined);
    assert.equal(parseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT", reference), example);
  }
});

const wholeSecond = (minMs: number, maxMs: number) =>
  fc.integer({ min: minMs / 1000, max: maxMs / 1000 }).map(second => new Date(second * 1000));

test("every second of the years 0 to 9999 is parsed as the Date class parses it", () => {
  const years = wholeSecond(new Date(0).setUTCFullYear(0, 0, 1), Date.UTC(9999, 11, 31, 23, 59, 59));
  fc.assert(
    fc.property(years, at => {
      assert.equal(parseHttpDate(at.toUTCString(), in2026), at.getTime());
      assert.equal(parseHttpDate(imfFixdate(at), in2026), at.getTime());
      assert.equal(parseHttpDate(asctime(at), in2026), at.getTime());
    }),
    { numRuns: 2000 },
  );
});

test("a two-digit year is resolved for every instant within fifty years of the reference", () => {
  fc.assert(
    fc.property(
      wholeSecond(Date.UTC(1800, 0), Date.UTC(2300, 0)),
      fc.integer({ min: -49 * 365, max: 49 * 365 }),
      (now, days) => {
        const at = new Date(now.getTime() + days * 86_400_000);
        assert.equal(parseHttpDate(rfc850(at), now.getTime()), at.getTime());
      },
    ),
    { numRuns: 2000 },
  );
});

test("a day that the Date class would carry over into the next month is not a date", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1000, max: 9999 }), fc.nat(11), fc.nat(99), (year, month, day) => {
      const at = new Date(Date.UTC(year, month, day));
      const text = `Mon, ${two(day)} ${MONTHS[month]} ${year} 00:00:00 GMT`;
      assert.equal(
        parseHttpDate(text, in2026),
        at.getUTCMonth() === month && day > 0 && day < 32 ? at.getTime() : undefined,
      );
    }),
    { numRuns: 2000 },
  );
});

test("any text is a whole second or undefined", () => {
  const piece = fc.constantFrom("Sun", "Sunday", ", ", " ", "06", " 6", "-", "Nov", "94", "1994", "08:49:37", "GMT");
  const dateLike = fc.array(piece, { maxLength: 12 }).map(parts => parts.join(""));
  fc.assert(
    fc.property(fc.oneof(fc.string(), dateLike), fc.double(), (text, referenceMs) => {
      const ms = parseHttpDate(text, referenceMs);
      assert.ok(ms === undefined || Number.isInteger(ms / 1000));
    }),
  );
});

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

function two(value: number): string {
  return String(value).padStart(2, "0");
}

function parts(at: Date) {
  const year = String(at.getUTCFullYear()).padStart(4, "0");
  const weekday = WEEKDAYS[at.getUTCDay()] ?? "";
  const time = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  return { year, weekday, day: at.getUTCDate(), month: MONTHS[at.getUTCMonth()], time };
}

function imfFixdate(at: Date): string {
  const { year, weekday, day, month, time } = parts(at);
  return `${weekday.slice(0, 3)}, ${two(day)} ${month} ${year} ${time} GMT`;
}

function rfc850(at: Date): string {
  const { year, weekday, day, month, time } = parts(at);
  return `${weekday}, ${two(day)}-${month}-${year.slice(2)} ${time} GMT`;
}

function asctime(at: Date): string {
  const { year, weekday, day, month, time } = parts(at);
  return `${weekday.slice(0, 3)} ${month} ${String(day).padStart(2)} ${time} ${year}`;
}
