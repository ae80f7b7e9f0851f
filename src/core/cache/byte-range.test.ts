import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  formatContentRange,
  joinRanges,
  matchesIfRange,
  parseContentRange,
  parseRange,
  resolveRange,
  strongTag,
} from "./byte-range.ts";

test("a range means the bytes that a slice of the representation has", () => {
  const number = fc.nat(20);
  fc.assert(
    fc.property(fc.string({ maxLength: 15 }), number, number, (text, first, last) => {
      const bytes = (range: string) => {
        const parsed = parseRange(range);
        const found = parsed && resolveRange(parsed, text.length);
        return found && text.slice(found.start, found.end);
      };
      const orNone = (slice: string) => (slice === "" ? undefined : slice);
      assert.equal(bytes(`bytes=${first}-`), orNone(text.slice(first)));
      assert.equal(bytes(`Bytes=${first}-${last}`), first > last ? undefined : orNone(text.slice(first, last + 1)));
      assert.equal(bytes(`bytes=-${last}`), last === 0 ? undefined : orNone(text.slice(-last)));
    }),
  );
});

test("several ranges, other units and invalid ranges are not parsed", () => {
  for (const text of [
    "",
    "bytes=",
    "bytes=-",
    "bytes=0-1,3-4",
    "items=0-1",
    "bytes=5-1",
    "bytes=a-b",
    "bytes=1e3-",
    "0-1",
  ])
    assert.equal(parseRange(text), undefined, text);
  assert.equal(parseRange(undefined), undefined);
  assert.equal(parseRange(`bytes=${"9".repeat(400)}-`), undefined);
});

test("a Content-Range is read as it was written, and an impossible one is ignored", () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), fc.nat(), (start, more, rest) => {
      const range = { start, end: start + more + 1, length: start + more + 1 + rest };
      assert.deepEqual(parseContentRange(formatContentRange(range)), range);
    }),
  );
  for (const text of ["bytes 0-4/*", "bytes */10", "bytes 4-3/10", "bytes 0-10/10", "items 0-1/2", "", "bytes 0-1"])
    assert.equal(parseContentRange(text), undefined, text);
  assert.equal(parseContentRange(undefined), undefined);
});

test("If-Range matches the same strong tag, or the same date of a response that is a second younger", () => {
  const date = "Sun, 01 Nov 2026 12:00:01 GMT";
  const modified = "Sun, 01 Nov 2026 12:00:00 GMT";
  const now = Date.UTC(2026, 10, 2);
  assert.ok(matchesIfRange('"a"', { etag: '"a"' }, now));
  assert.ok(!matchesIfRange('"b"', { etag: '"a"' }, now));
  assert.ok(!matchesIfRange('W/"a"', { etag: 'W/"a"' }, now));
  assert.ok(!matchesIfRange('"a"', { etag: 'W/"a"' }, now));
  assert.ok(matchesIfRange(modified, { "last-modified": modified, date }, now));
  assert.ok(!matchesIfRange(modified, { "last-modified": modified, date: modified }, now));
  assert.ok(!matchesIfRange(date, { "last-modified": modified, date }, now));
  assert.ok(!matchesIfRange(modified, {}, now));
  assert.ok(!matchesIfRange("", {}, now));
});

test("only a quoted tag without a weak mark identifies bytes", () => {
  assert.equal(strongTag({ etag: ' "a"' }), '"a"');
  assert.equal(strongTag({ etag: 'W/"a"' }), undefined);
  assert.equal(strongTag({ etag: "a" }), undefined);
  assert.equal(strongTag({}), undefined);
});

test("two parts join exactly when no byte is missing between them", () => {
  const part = fc
    .tuple(fc.nat(9), fc.integer({ min: 1, max: 9 }))
    .map(([start, size]) => ({ start, end: start + size }));
  fc.assert(
    fc.property(part, part, (one, other) => {
      const bytes = new Set<number>();
      for (const { start, end } of [one, other]) for (let at = start; at < end; at += 1) bytes.add(at);
      const [min, max] = [Math.min(...bytes), Math.max(...bytes)];
      const isWhole = bytes.size === max - min + 1;
      assert.deepEqual(joinRanges(one, other), isWhole ? { start: min, end: max + 1 } : undefined);
    }),
  );
});
