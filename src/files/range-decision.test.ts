import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeArrival, rangeFields, strongValidator } from "./range-decision.ts";

const half = { bytes: 100, validator: '"a"', totalBytes: 250 };
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
  assert.deepEqual(rangeFields(undefined), {});
  assert.deepEqual(rangeFields({ ...half, bytes: 0 }), {});
  assert.deepEqual(rangeFields(half), { range: "bytes=100-", "if-range": '"a"' });
});

test("a part fits when it begins where ours ends and is of the same version and length", () => {
  const part = (range: string, etag = '"a"') => judgeArrival(206, { "content-range": range, etag }, half).kind;
  assert.equal(part("bytes 100-249/250"), "rest");
  assert.equal(part("bytes 100-120/*"), "rest");
  assert.equal(part("bytes 99-249/250"), "misfit");
  assert.equal(part("bytes 101-249/250"), "misfit");
  assert.equal(part("bytes 100-299/300"), "misfit");
  assert.equal(part("bytes 100-249/250", '"b"'), "misfit");
  assert.equal(part("bytes 100-50/250"), "misfit");
  assert.equal(part("pages 1-2/3"), "misfit");
  assert.equal(judgeArrival(206, { "content-range": "bytes 100-249/250" }, undefined).kind, "misfit");
});

test("200 is the whole file, whatever was asked for", () => {
  assert.deepEqual(judgeArrival(200, { "content-length": "7" }, half), { kind: "whole", totalBytes: 7 });
  assert.deepEqual(judgeArrival(200, { "content-length": "7, 7" }, half), { kind: "whole", totalBytes: undefined });
});

test("416 says that all is at hand when all three lengths agree", () => {
  const all = { ...half, bytes: 250 };
  assert.equal(judgeArrival(416, { "content-range": "bytes */250" }, all).kind, "complete");
  assert.equal(judgeArrival(416, { "content-range": "bytes */240" }, all).kind, "misfit");
  assert.equal(judgeArrival(416, { "content-range": "bytes */100" }, half).kind, "misfit");
  assert.equal(judgeArrival(416, {}, all).kind, "misfit");
  assert.equal(judgeArrival(416, {}, undefined).kind, "other");
});

test("everything else is no file", () => {
  assert.equal(judgeArrival(304, {}, undefined).kind, "unchanged");
  for (const status of [202, 204, 302, 403, 404, 500]) assert.equal(judgeArrival(status, {}, half).kind, "other");
});
