import assert from "node:assert/strict";
import { test } from "node:test";
import { decideRange, rangeHeaders, strongValidator } from "./range-decision.ts";

const resumePoint = { bytes: 100, validator: '"a"', totalBytes: 250 };
const DATE = "Mon, 16 Nov 2026 02:00:00 GMT";

test("an ETag vouches for bytes unless it is weak, and then nothing else does", () => {
  assert.equal(strongValidator({ etag: '"a"' }), '"a"');
  assert.equal(strongValidator({ etag: 'W/"a"' }), undefined);
  assert.equal(
    strongValidator({ etag: 'W/"a"', "last-modified": "Mon, 16 Nov 2026 01:00:00 GMT", date: DATE }),
    undefined,
  );
  assert.equal(strongValidator({ etag: "a" }), undefined);
});

test("a date vouches for bytes when it is older than the answer by a second", () => {
  const modified = "Mon, 16 Nov 2026 01:59:59 GMT";
  assert.equal(strongValidator({ "last-modified": modified, date: DATE }), modified);
  assert.equal(strongValidator({ "last-modified": DATE, date: DATE }), undefined);
  assert.equal(strongValidator({ "last-modified": modified }), undefined);
  assert.equal(strongValidator({ "last-modified": "yesterday", date: DATE }), undefined);
});

test("the rest is asked for only where there is something to go on with", () => {
  assert.deepEqual(rangeHeaders(undefined), {});
  assert.deepEqual(rangeHeaders({ ...resumePoint, bytes: 0 }), {});
  assert.deepEqual(rangeHeaders(resumePoint), { range: "bytes=100-", "if-range": '"a"' });
});

test("a part fits when it begins where ours ends and is of the same version and length", () => {
  const part = (range: string, etag = '"a"') => decideRange(206, { "content-range": range, etag }, resumePoint).kind;
  assert.equal(part("bytes 100-249/250"), "rest");
  assert.equal(part("bytes 100-120/*"), "rest");
  assert.equal(part("bytes 99-249/250"), "mismatch");
  assert.equal(part("bytes 101-249/250"), "mismatch");
  assert.equal(part("bytes 100-299/300"), "mismatch");
  assert.equal(part("bytes 100-249/250", '"b"'), "mismatch");
  assert.equal(part("bytes 100-50/250"), "mismatch");
  assert.equal(part("pages 1-2/3"), "mismatch");
  assert.equal(decideRange(206, { "content-range": "bytes 100-249/250" }, undefined).kind, "mismatch");
});

test("200 is the whole file, whatever was asked for", () => {
  assert.deepEqual(decideRange(200, { "content-length": "7" }, resumePoint), { kind: "whole", totalBytes: 7 });
  assert.deepEqual(decideRange(200, { "content-length": "7, 7" }, resumePoint), {
    kind: "whole",
    totalBytes: undefined,
  });
});

test("416 says that all is at hand when all three lengths agree", () => {
  const all = { ...resumePoint, bytes: 250 };
  assert.equal(decideRange(416, { "content-range": "bytes */250" }, all).kind, "complete");
  assert.equal(decideRange(416, { "content-range": "bytes */240" }, all).kind, "mismatch");
  assert.equal(decideRange(416, { "content-range": "bytes */100" }, resumePoint).kind, "mismatch");
  assert.equal(decideRange(416, {}, all).kind, "mismatch");
  assert.equal(decideRange(416, {}, undefined).kind, "other");
});

test("everything else is no file", () => {
  assert.equal(decideRange(304, {}, undefined).kind, "unchanged");
  for (const status of [202, 204, 302, 403, 404, 500]) assert.equal(decideRange(status, {}, resumePoint).kind, "other");
});
