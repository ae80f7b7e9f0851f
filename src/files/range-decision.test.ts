import assert from "node:assert/strict";
import { test } from "node:test";
import { decideRange, rangeHeaders, strongValidator } from "./range-decision.ts";

const resumePoint = { bytes: 100, validator: '"a"', totalBytes: 250 };
const DATE = "Mon, 16 Nov 2026 02:00:00 GMT";

test("a strong ETag is a validator; with a weak ETag there is none", () => {
  assert.equal(strongValidator({ etag: '"a"' }), '"a"');
  assert.equal(strongValidator({ etag: 'W/"a"' }), undefined);
  assert.equal(
    strongValidator({ etag: 'W/"a"', "last-modified": "Mon, 16 Nov 2026 01:00:00 GMT", date: DATE }),
    undefined,
  );
  assert.equal(strongValidator({ etag: "a" }), undefined);
});

test("a Last-Modified is a validator if it is at least one second older than the response", () => {
  const modified = "Mon, 16 Nov 2026 01:59:59 GMT";
  assert.equal(strongValidator({ "last-modified": modified, date: DATE }), modified);
  assert.equal(strongValidator({ "last-modified": DATE, date: DATE }), undefined);
  assert.equal(strongValidator({ "last-modified": modified }), undefined);
  assert.equal(strongValidator({ "last-modified": "yesterday", date: DATE }), undefined);
});

test("a range is requested only if there are bytes to resume", () => {
  assert.deepEqual(rangeHeaders(undefined), {});
  assert.deepEqual(rangeHeaders({ ...resumePoint, bytes: 0 }), {});
  assert.deepEqual(rangeHeaders(resumePoint), { range: "bytes=100-", "if-range": '"a"' });
});

test("a 206 continues the partial file if start, version and total length agree", () => {
  const part = (range: string, etag = '"a"') => decideRange(206, { "content-range": range, etag }, resumePoint).kind;
  assert.equal(part("bytes 100-249/250"), "rest");
  assert.equal(part("bytes 100-120/*"), "rest");
  assert.equal(part("bytes 99-249/250"), "mismatch");
  assert.equal(part("bytes 101-249/250"), "mismatch");
  assert.equal(part("bytes 100-299/300"), "mismatch");
  assert.equal(part("bytes 100-249/250", '"b"'), "mismatch");
  assert.equal(part("bytes 100-50/250"), "mismatch");
  assert.equal(part("pages 1-2/3"), "mismatch");
  assert.equal(decideRange(206, { "content-range": "bytes 100-249/250" }, undefined).kind, "other");
});

test("a 206 of another version is not joined, also if the server ignores If-Range", () => {
  const modified = "Mon, 16 Nov 2026 01:00:00 GMT";
  const joined = (validator: string, headers: Record<string, string>) =>
    decideRange(206, { "content-range": "bytes 100-249/250", date: DATE, ...headers }, { ...resumePoint, validator })
      .kind === "rest";
  assert.equal(joined(modified, { "last-modified": modified }), true);
  assert.equal(joined(modified, { "last-modified": "Monday, 16-Nov-26 01:00:00 GMT" }), true);
  assert.equal(joined(modified, {}), true);
  assert.equal(joined(modified, { "last-modified": "Mon, 16 Nov 2026 01:00:01 GMT" }), false);
  assert.equal(joined(modified, { "last-modified": DATE }), false);
  assert.equal(joined(modified, { "last-modified": "yesterday" }), false);
  assert.equal(joined(modified, { "last-modified": modified, etag: '"b"' }), false);
  // With a tag the date does not count: servers behind one name may have different dates for the same file.
  assert.equal(joined('"a"', { etag: '"a"', "last-modified": modified }), true);
  assert.equal(joined('"a"', { etag: 'W/"a"' }), true);
  assert.equal(joined('"a"', { etag: 'W/"b"' }), false);
});

test("a 200 is the full file, also after a range request", () => {
  assert.deepEqual(decideRange(200, { "content-length": "7" }, resumePoint), { kind: "full", totalBytes: 7 });
  assert.deepEqual(decideRange(200, { "content-length": "7, 7" }, resumePoint), {
    kind: "full",
    totalBytes: undefined,
  });
});

test("a 206 that was not asked for is the file if it has all bytes, and a part of it is not", () => {
  const part = (range: string) => decideRange(206, { "content-range": range }, undefined);
  assert.deepEqual(part("bytes 0-249/250"), { kind: "full", totalBytes: 250 });
  for (const range of ["bytes 0-248/250", "bytes 1-249/250", "bytes 0-249/*", "bytes 0-0/0"])
    assert.equal(part(range).kind, "other");
  assert.equal(decideRange(206, {}, undefined).kind, "other");
});

test("a 416 means complete if all three lengths agree", () => {
  const all = { ...resumePoint, bytes: 250 };
  assert.equal(decideRange(416, { "content-range": "bytes */250" }, all).kind, "complete");
  assert.equal(decideRange(416, { "content-range": "bytes */240" }, all).kind, "mismatch");
  assert.equal(decideRange(416, { "content-range": "bytes */100" }, resumePoint).kind, "mismatch");
  assert.equal(decideRange(416, {}, all).kind, "mismatch");
  assert.equal(decideRange(416, {}, undefined).kind, "other");
});

test("every other status is not the file", () => {
  assert.equal(decideRange(304, {}, undefined).kind, "unchanged");
  for (const status of [202, 204, 302, 403, 404, 500]) assert.equal(decideRange(status, {}, resumePoint).kind, "other");
});
