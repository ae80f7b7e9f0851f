import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { responseControl } from "./cache-control.ts";
import { ageMs, type EntryFacts, entryFacts, freshnessLifetimeMs } from "./freshness.ts";
import type { HeaderFields } from "./stored-fields.ts";

const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0);
const dayMs = 86_400_000;
const at = (ms: number) => new Date(ms).toUTCString();

function lifetimeMs(headers: HeaderFields, status = 200): number {
  const control = responseControl(headers["cache-control"]);
  return freshnessLifetimeMs({ status, headers, receivedMs: nowMs, responseControl: control });
}

/** A response that arrived at `nowMs` with these fields. */
function entry(headers: HeaderFields): EntryFacts {
  return entryFacts({ status: 200, headers, requestedMs: nowMs, receivedMs: nowMs });
}

test("max-age is the lifetime and wins over Expires", () => {
  assert.equal(lifetimeMs({ "cache-control": "max-age=60" }), 60_000);
  assert.equal(lifetimeMs({ "cache-control": "max-age=60", expires: "0" }), 60_000);
  assert.equal(lifetimeMs({ "cache-control": "max-age=0", expires: at(nowMs + dayMs) }), 0);
  assert.equal(lifetimeMs({ "cache-control": "max-age=x", expires: at(nowMs + dayMs) }), 0);
});

test("s-maxage is ignored, because it is for shared caches", () => {
  assert.equal(lifetimeMs({ "cache-control": "s-maxage=60" }), 0);
  assert.equal(lifetimeMs({ "cache-control": "s-maxage=60, max-age=5" }), 5000);
});

test("Expires is measured from the response's Date, or from its arrival", () => {
  const expires = at(nowMs + 60_000);
  assert.equal(lifetimeMs({ expires }), 60_000);
  assert.equal(lifetimeMs({ expires, date: at(nowMs - 60_000) }), 120_000);
  assert.equal(lifetimeMs({ expires, date: "yesterday" }), 60_000);
  assert.equal(lifetimeMs({ expires: [expires, expires] }), 60_000);
});

test("an Expires that is in the past, invalid or ambiguous means expired", () => {
  for (const expires of [
    at(nowMs - 1000),
    at(nowMs),
    "0",
    "-1",
    "",
    "tomorrow",
    [at(nowMs + 1000), at(nowMs + 2000)],
  ]) {
    assert.equal(lifetimeMs({ expires, "last-modified": at(nowMs - dayMs) }), 0);
  }
});

test("without an explicit lifetime a response is fresh for a tenth of the time since its last change, at most a day", () => {
  assert.equal(lifetimeMs({ "last-modified": at(nowMs - 100_000) }), 10_000);
  assert.equal(lifetimeMs({ "last-modified": at(nowMs - 100_000), date: at(nowMs - 50_000) }), 5000);
  assert.equal(lifetimeMs({ "last-modified": at(nowMs - 1000 * dayMs) }), dayMs);
  assert.equal(lifetimeMs({ "last-modified": at(nowMs + 1000) }), 0);
  assert.equal(lifetimeMs({ "last-modified": "long ago" }), 0);
  assert.equal(lifetimeMs({ etag: '"a"' }), 0);
});

test("a status that is not heuristically cacheable gets no lifetime unless the response is public", () => {
  const headers = { "last-modified": at(nowMs - 100_000) };
  assert.equal(lifetimeMs(headers, 404), 10_000);
  assert.equal(lifetimeMs(headers, 302), 0);
  assert.equal(lifetimeMs({ ...headers, "cache-control": "public" }, 302), 10_000);
});

test("no-cache removes the lifetime, and immutable adds none", () => {
  assert.equal(lifetimeMs({ "cache-control": "max-age=60, no-cache" }), 0);
  assert.equal(lifetimeMs({ "cache-control": "immutable" }), 0);
});

const timing = { requestedMs: nowMs - 200, receivedMs: nowMs, dateMs: nowMs, ageHeaderS: undefined };

test("the age is counted from the sending of the request", () => {
  assert.equal(ageMs(nowMs, timing), 200);
  assert.equal(ageMs(nowMs + 5000, timing), 5200);
});

test("the Age header of caches on the way is added", () => {
  assert.equal(ageMs(nowMs + 5000, { ...timing, ageHeaderS: 30 }), 35_200);
});

test("an older Date gives the age instead", () => {
  assert.equal(ageMs(nowMs, { ...timing, dateMs: nowMs - 60_000 }), 60_000);
  assert.equal(ageMs(nowMs, { ...timing, dateMs: nowMs - 60_000, ageHeaderS: 90 }), 90_200);
  assert.equal(ageMs(nowMs, { ...timing, dateMs: undefined }), 200);
});

test("a Date in the future does not lower the age", () => {
  assert.equal(ageMs(nowMs, { ...timing, dateMs: nowMs + dayMs }), 200);
});

test("a wall clock that was set back never lowers the age", () => {
  assert.equal(ageMs(nowMs, { ...timing, requestedMs: nowMs + dayMs }), 0);
  assert.equal(ageMs(nowMs - 1000, timing), 1200);
  assert.equal(ageMs(nowMs - 5000 * dayMs, timing), 5000 * dayMs + 200);
});

test("the age is never negative and never decreases", () => {
  const ms = fc.integer({ min: 0, max: 4e12 });
  const birth = fc.record({
    requestedMs: ms,
    receivedMs: ms,
    dateMs: fc.option(ms, { nil: undefined }),
    ageHeaderS: fc.option(fc.nat(), { nil: undefined }),
  });
  fc.assert(
    fc.property(birth, ms, fc.nat(), (from, now, laterMs) => {
      assert.ok(ageMs(now, from) >= 0);
      const after = Math.max(now, from.receivedMs);
      assert.equal(ageMs(after + laterMs, from), ageMs(after, from) + laterMs);
    }),
  );
});

test("Age is a number of seconds or the first of a list, and ignored when invalid", () => {
  assert.equal(entry({ age: "30" }).ageHeaderS, 30);
  assert.equal(entry({ age: "30, 0" }).ageHeaderS, 30);
  assert.equal(entry({ age: [" 30 ,1", "0"] }).ageHeaderS, 30);
  for (const age of ["abc", "-30", "7.5", "", "x,30"]) assert.equal(entry({ age }).ageHeaderS, undefined);
});

test("the facts of a stored response are computed from its headers", () => {
  const headers = { "cache-control": "max-age=60, immutable", date: at(nowMs - 1000), age: "2" };
  const control = responseControl("max-age=60, immutable");
  const times = { requestedMs: nowMs - 5, receivedMs: nowMs };
  assert.deepEqual(entryFacts({ status: 200, headers, ...times }), {
    ...times,
    dateMs: nowMs - 1000,
    ageHeaderS: 2,
    lifetimeMs: 60_000,
    mayHaveOwnLifetime: false,
    control,
  });
});
