import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import CachePolicy from "http-cache-semantics";
import { requestControl, responseControl } from "./cache-control.ts";
import { freshnessLifetimeMs } from "./freshness.ts";
import { isStorable } from "./storability.ts";
import type { HeaderFields } from "./stored-fields.ts";

const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0);
const dayMs = 86_400_000;
const at = (ms: number) => new Date(ms).toUTCString();

function storable(headers: HeaderFields, { status = 200, method = "GET", requested = "" } = {}): boolean {
  return isStorable({
    method,
    url: "https://example.org/a?b=1",
    status,
    headers,
    receivedMs: nowMs,
    requestControl: requestControl(requested),
    responseControl: responseControl(headers["cache-control"]),
  });
}

test("only GET is stored", () => {
  const headers = { "cache-control": "max-age=60" };
  assert.equal(storable(headers), true);
  for (const method of ["HEAD", "POST", "PUT", "get", "OPTIONS"]) assert.equal(storable(headers, { method }), false);
});

test("the response to a POST is stored when it is that of a GET for an explicit time", () => {
  const post = { method: "POST" };
  const same = { "content-location": "?b=1" };
  assert.equal(storable({ ...same, "cache-control": "max-age=60" }, post), true);
  assert.equal(storable({ ...same, expires: at(nowMs + dayMs) }, post), true);
  assert.equal(
    storable({ "content-location": "https://example.org/a?b=1", "cache-control": "max-age=60" }, post),
    true,
  );
  assert.equal(storable({ "cache-control": "max-age=60" }, post), false, "no Content-Location");
  assert.equal(storable({ "content-location": "/b", "cache-control": "max-age=60" }, post), false, "another URL");
  assert.equal(storable({ ...same, "last-modified": at(nowMs - dayMs) }, post), false, "no explicit lifetime");
  assert.equal(storable({ ...same, "cache-control": "max-age=0" }, post), false);
  assert.equal(storable({ ...same, "cache-control": "max-age=60, no-store" }, post), false);
  assert.equal(storable({ ...same, "cache-control": "max-age=60" }, { method: "POST", status: 201 }), false);
  assert.equal(storable({ ...same, "cache-control": "max-age=60" }, { method: "PUT" }), false);
});

test("a 206 is stored only with one valid Content-Range that gives the length", () => {
  const headers = { "cache-control": "max-age=60" };
  assert.equal(storable({ ...headers, "content-range": "bytes 0-4/10" }, { status: 206 }), true);
  assert.equal(storable({ ...headers, "content-range": "bytes 0-4/*" }, { status: 206 }), false);
  assert.equal(storable({ ...headers, "content-type": "multipart/byteranges; boundary=x" }, { status: 206 }), false);
});

test("no-store in the request or in the response prevents storing", () => {
  assert.equal(storable({ "cache-control": "max-age=60" }, { requested: "no-store" }), false);
  assert.equal(storable({ "cache-control": "max-age=60, no-store" }), false);
});

test("must-understand allows storing for known statuses and forbids it for others", () => {
  const headers = { "cache-control": "max-age=60, no-store, must-understand" };
  assert.equal(storable(headers), true);
  assert.equal(storable(headers, { status: 307 }), true);
  assert.equal(storable(headers, { status: 499 }), false);
  assert.equal(storable({ "cache-control": "max-age=60, must-understand" }, { status: 499 }), false);
});

test("a response with Vary: * is not stored", () => {
  assert.equal(storable({ "cache-control": "max-age=60", vary: "Accept, *" }), false);
  assert.equal(storable({ "cache-control": "max-age=60", vary: "Accept" }), true);
});

test("a response without a lifetime, a heuristic or a validator is not stored", () => {
  assert.equal(storable({}), false);
  assert.equal(storable({ "cache-control": "public", etag: "" }), false);
  assert.equal(storable({ etag: '"a"' }), true);
  assert.equal(storable({ "last-modified": at(nowMs - dayMs) }), true);
  assert.equal(storable({ expires: "0" }), true);
  assert.equal(storable({ "cache-control": "no-cache", etag: '"a"' }), true);
});

for (const status of [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]) {
  test(`a ${status} is stored by default`, () => assert.equal(storable({ etag: '"a"' }, { status }), true));
}

for (const status of [201, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599]) {
  test(`a ${status} is stored only while it is explicitly fresh`, () => {
    assert.equal(storable({ etag: '"a"', "last-modified": at(nowMs - dayMs) }, { status }), false);
    assert.equal(storable({ etag: '"a"', "cache-control": "max-age=0, must-revalidate" }, { status }), false);
    assert.equal(storable({ etag: '"a"', "cache-control": "max-age=60, no-cache" }, { status }), false);
    assert.equal(storable({ "cache-control": "max-age=60" }, { status }), true);
    assert.equal(storable({ expires: at(nowMs + 1000) }, { status }), true);
    assert.equal(storable({ "cache-control": "public", "last-modified": at(nowMs - dayMs) }, { status }), true);
  });
}

for (const status of [100, 199, 304, 401, 407, 428, 429, 431, 511, 600]) {
  test(`a ${status} is never stored`, () => {
    assert.equal(storable({ "cache-control": "public, max-age=60", etag: '"a"' }, { status }), false);
  });
}

function lifetimeMs(headers: HeaderFields, status = 200): number {
  const control = responseControl(headers["cache-control"]);
  return freshnessLifetimeMs({ status, headers, receivedMs: nowMs, responseControl: control });
}

const seconds = fc.integer({ min: 0, max: 100 });
const fieldDate = fc.integer({ min: -400, max: 400 }).map(hours => at(nowMs + hours * 3_600_000));
const answer = fc.record({
  status: fc.constantFrom(200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501),
  control: fc.option(
    fc
      .subarray(["no-store", "no-cache", "public", "private", "must-revalidate", "s-maxage=9", "max-age"])
      .chain(names =>
        seconds.map(value => names.map(name => (name === "max-age" ? `max-age=${value}` : name)).join(", ")),
      ),
    { nil: undefined },
  ),
  date: fc.option(fieldDate, { nil: undefined }),
  expires: fc.option(fc.oneof(fieldDate, fc.constant("0")), { nil: undefined }),
  lastModified: fc.option(fieldDate, { nil: undefined }),
  etag: fc.option(fc.constant('"a"'), { nil: undefined }),
});

/**
 * http-cache-semantics as a private cache, for the cases where both implementations must agree. It differs as follows,
 * so these cases are left out here and tested above:
 * - it supports neither must-understand nor names in upper case, and stores responses with `Vary: *`;
 * - it gives every immutable response a lifetime, and takes milliseconds for seconds there;
 * - it applies `Pragma` in a response, which the standard does not define;
 * - it never stores a status that is not in its list, even when it is fresh;
 * - it does not cap a heuristic lifetime, and accepts every date that the engine accepts.
 */
class Oracle extends CachePolicy {
  override now(): number {
    return nowMs;
  }
}

test("http-cache-semantics agrees on what is stored and for how long", () => {
  let stored = 0;
  fc.assert(
    fc.property(answer, fc.boolean(), ({ status, control, date, expires, lastModified, etag }, noStore) => {
      const present = { "cache-control": control, date, expires, "last-modified": lastModified, etag };
      const headers = Object.fromEntries(Object.entries(present).filter(([, value]) => value !== undefined));
      const directives = noStore ? "no-store" : "";
      const request = { method: "GET", url: "/", headers: directives === "" ? {} : { "cache-control": directives } };
      const oracle = new Oracle(request, { status, headers }, { shared: false });

      const isHeuristic = responseControl(control).maxAgeS === undefined && expires === undefined;
      const expectedMs = Math.floor(oracle.maxAge() * 1000);
      if (oracle.storable())
        assert.equal(lifetimeMs(headers, status), isHeuristic ? Math.min(expectedMs, dayMs) : expectedMs);

      // It also stores useless responses: without lifetime and validator, or redirects that are never fresh.
      const isUseful = [302, 303, 307].includes(status) ? oracle.maxAge() > 0 : !isHeuristic || lastModified || etag;
      assert.equal(storable(headers, { status, requested: directives }), oracle.storable() && Boolean(isUseful));
      if (oracle.storable() && isUseful) stored += 1;
    }),
    { numRuns: 3000 },
  );
  assert.ok(stored > 500);
});
