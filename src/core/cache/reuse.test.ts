import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import CachePolicy from "http-cache-semantics";
import { requestControl, responseControl } from "./cache-control.ts";
import { type EntryFacts, entryFacts, freshnessLifetimeMs } from "./freshness.ts";
import { decideReuse, isStorable } from "./reuse.ts";
import type { HeaderFields } from "./stored-fields.ts";

const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0);
const dayMs = 86_400_000;

/** A response that arrived at `nowMs` with these fields. */
function entry(headers: HeaderFields): EntryFacts {
  return entryFacts({ status: 200, headers, requestedMs: nowMs, receivedMs: nowMs });
}

/** The decision for a response with this `Cache-Control`, `ageS` seconds after it arrived. */
function reuse(permitted: string, requested: string, ageS: number): string {
  const found = decideReuse(entry({ "cache-control": permitted }), requestControl(requested), nowMs + ageS * 1000);
  return found.kind === "revalidate" && found.mayServeOnError ? "revalidate or serve" : found.kind;
}

const table: readonly (readonly [title: string, permitted: string, requested: string, ageS: number, kind: string])[] = [
  ["a fresh response is served", "max-age=60", "", 59.999, "fresh"],
  ["a response that has reached its lifetime is stale", "max-age=60", "", 60, "revalidate"],
  ["must-revalidate has no effect while the response is fresh", "max-age=60, must-revalidate", "", 30, "fresh"],
  [
    "no-cache in the response always revalidates",
    "max-age=60, no-cache, stale-if-error=60",
    "max-stale",
    0,
    "revalidate",
  ],
  [
    "no-cache in the request always revalidates",
    "max-age=60, immutable, stale-if-error=60",
    "no-cache",
    0,
    "revalidate",
  ],

  ["a response within max-age of the request is served", "max-age=60", "max-age=30", 30, "fresh"],
  ["an older response is revalidated", "max-age=60", "max-age=30", 30.001, "revalidate"],
  ["max-age=0 revalidates at once", "max-age=60", "max-age=0", 0, "revalidate"],
  ["max-age=0 does not revalidate a fresh immutable response", "max-age=60, immutable", "max-age=0", 30, "fresh"],
  ["max-age=0 revalidates a stale immutable response", "max-age=60, immutable", "max-age=0", 60, "revalidate"],
  ["a response that stays fresh for min-fresh is served", "max-age=60", "min-fresh=30", 30, "fresh"],
  ["a response that expires within min-fresh is revalidated", "max-age=60", "min-fresh=30", 30.001, "revalidate"],
  ["min-fresh applies to an immutable response", "max-age=60, immutable", "min-fresh=30", 31, "revalidate"],
  ["min-fresh wins over max-stale", "max-age=60", "min-fresh=1, max-stale", 61, "revalidate"],

  ["max-stale without a value accepts any staleness", "max-age=60", "max-stale", 1e6, "stale"],
  ["a response within max-stale is served", "max-age=60", "max-stale=10", 70, "stale"],
  ["a response beyond max-stale is revalidated", "max-age=60", "max-stale=10", 70.001, "revalidate"],
  ["max-stale=0 accepts no stale response", "max-age=60", "max-stale=0", 60, "revalidate"],
  ["max-stale has no effect while the response is fresh", "max-age=60", "max-stale", 30, "fresh"],
  ["max-age and max-stale both apply", "max-age=60", "max-age=70, max-stale=60", 65, "stale"],
  ["max-age applies within max-stale", "max-age=60", "max-age=70, max-stale=60", 71, "revalidate"],
  ["must-revalidate forbids max-stale", "max-age=60, must-revalidate", "max-stale", 61, "revalidate"],

  [
    "a response within stale-while-revalidate is served",
    "max-age=60, stale-while-revalidate=10",
    "",
    70,
    "stale-while-revalidate",
  ],
  [
    "a response beyond stale-while-revalidate is revalidated",
    "max-age=60, stale-while-revalidate=10",
    "",
    70.001,
    "revalidate",
  ],
  ["stale-while-revalidate=0 allows nothing", "max-age=60, stale-while-revalidate=0", "", 60, "revalidate"],
  [
    "must-revalidate forbids stale-while-revalidate",
    "max-age=60, stale-while-revalidate=10, must-revalidate",
    "",
    61,
    "revalidate",
  ],
  [
    "max-age in the request forbids stale-while-revalidate",
    "max-age=60, stale-while-revalidate=10",
    "max-age=99",
    61,
    "revalidate",
  ],
  [
    "max-stale in the request limits stale-while-revalidate",
    "max-age=60, stale-while-revalidate=10",
    "max-stale=1",
    62,
    "revalidate",
  ],
  ["max-stale wins over stale-while-revalidate", "max-age=60, stale-while-revalidate=10", "max-stale=5", 62, "stale"],

  [
    "a response within its stale-if-error may be served on errors",
    "max-age=60, stale-if-error=10",
    "",
    70,
    "revalidate or serve",
  ],
  ["a response beyond stale-if-error may not", "max-age=60, stale-if-error=10", "", 70.001, "revalidate"],
  ["stale-if-error in the request has the same effect", "max-age=60", "stale-if-error=10", 70, "revalidate or serve"],
  [
    "the longer of both stale-if-error values wins",
    "max-age=60, stale-if-error=1",
    "stale-if-error=10",
    70,
    "revalidate or serve",
  ],
  [
    "a fresh response that exceeds max-age may be served on errors",
    "max-age=60, stale-if-error=1",
    "max-age=0",
    5,
    "revalidate or serve",
  ],
  ["must-revalidate forbids stale-if-error", "max-age=60, must-revalidate", "stale-if-error=99", 61, "revalidate"],
];

for (const [title, permitted, requested, ageS, kind] of table) {
  test(`${title} (${permitted} | ${requested || "no directives"} | ${ageS} s: ${kind})`, () => {
    assert.equal(reuse(permitted, requested, ageS), kind);
  });
}

test("a response stored by a clock that was ahead is revalidated", () => {
  assert.equal(
    decideReuse(entry({ "cache-control": "max-age=3600" }), requestControl(undefined), nowMs - 300 * dayMs).kind,
    "revalidate",
  );
});

const seconds = fc.integer({ min: 0, max: 100 });
const permitted = fc
  .subarray(["no-cache", "must-revalidate", "immutable", "max-age", "stale-if-error", "stale-while-revalidate"])
  .chain(names =>
    fc.tuple(...names.map(name => seconds.map(value => (/a.e|-if-|while/.test(name) ? `${name}=${value}` : name)))),
  )
  .map(parts => parts.join());
const requested = fc
  .subarray(["no-cache", "max-age", "min-fresh", "max-stale", "stale-if-error"])
  .chain(names =>
    fc.tuple(...names.map(name => seconds.map(value => (name === "no-cache" ? name : `${name}=${value}`)))),
  )
  .map(parts => parts.join());

test("a stale response is served only when the request or the response allows it and neither forbids it", () => {
  fc.assert(
    fc.property(permitted, requested, fc.integer({ min: 0, max: 250 }), (responseText, requestText, ageS) => {
      const control = responseControl(responseText);
      const request = requestControl(requestText);
      const isStale = ageS >= (control.noCache ? 0 : (control.maxAgeS ?? 0));
      const kind = reuse(responseText, requestText, ageS);
      if (kind === "fresh") assert.ok(!isStale && !control.noCache && !request.noCache);
      if (isStale && (control.mustRevalidate || control.noCache || request.noCache)) assert.equal(kind, "revalidate");
      if (kind === "stale") assert.ok(request.maxStaleS > 0);
      if (kind === "stale-while-revalidate") assert.ok(control.staleWhileRevalidateS > 0);
      if (kind === "revalidate or serve") assert.ok(control.staleIfErrorS + request.staleIfErrorS > 0);
    }),
    { numRuns: 2000 },
  );
});

test("a response that needed revalidation is never served without it later", () => {
  const byPermission = ["revalidate", "revalidate or serve", "stale-while-revalidate", "stale", "fresh"];
  fc.assert(
    fc.property(permitted, requested, seconds, seconds, (responseText, requestText, ageS, laterS) => {
      const [now, later] = [reuse(responseText, requestText, ageS), reuse(responseText, requestText, ageS + laterS)];
      // Both stale decisions serve the response; max-stale is checked first and may end first.
      const rank = (kind: string) => Math.min(byPermission.indexOf(kind), kind === "fresh" ? 4 : 2);
      assert.ok(rank(later) <= rank(now), `${now}, then ${later}`);
    }),
    { numRuns: 2000 },
  );
});

const at = (ms: number) => new Date(ms).toUTCString();

interface StorableOptions {
  readonly status?: number;
  readonly method?: string;
  readonly requested?: string;
  readonly ownLifetimeMs?: number;
}

function storable(headers: HeaderFields, options: StorableOptions = {}): boolean {
  const { status = 200, method = "GET", requested = "", ownLifetimeMs } = options;
  return isStorable({
    method,
    url: "https://example.org/a?b=1",
    status,
    headers,
    receivedMs: nowMs,
    requestControl: { ...requestControl(requested), ownLifetimeMs },
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

test("a lifetime of the caller stores what the server gives no lifetime for, and nothing that must not be stored", () => {
  const own = { ownLifetimeMs: dayMs };
  assert.equal(storable({}, own), true);
  assert.equal(storable({ "cache-control": "private" }, own), true);
  assert.equal(storable({}, { ...own, status: 404 }), true);
  assert.equal(storable({}, { ownLifetimeMs: 0 }), false);
  assert.equal(storable({ "cache-control": "no-store" }, own), false);
  assert.equal(storable({ "cache-control": "no-cache" }, own), false);
  assert.equal(storable({ vary: "*" }, own), false);
  for (const status of [206, 302, 401, 403, 429, 500, 503]) assert.equal(storable({}, { ...own, status }), false);
  for (const method of ["HEAD", "POST", "PUT"]) assert.equal(storable({}, { ...own, method }), false);
});

test("a lifetime of the caller counts from the receipt, whatever the clock of the server says", () => {
  const facts = entryFacts({
    status: 200,
    headers: { date: at(nowMs - dayMs) },
    requestedMs: nowMs,
    receivedMs: nowMs,
  });
  const request = { ...requestControl(""), ownLifetimeMs: 60_000 };
  assert.equal(decideReuse(facts, request, nowMs + 59_999).kind, "fresh");
  assert.equal(decideReuse(facts, request, nowMs + 60_000).kind, "revalidate");
});

test("a lifetime of the caller counts instead of the heuristic one, and never instead of one that the server gives", () => {
  const requests = (ownLifetimeMs: number) => ({ ...requestControl(""), ownLifetimeMs });
  const kind = (headers: HeaderFields, ownLifetimeMs: number, ageMs: number, status = 200) => {
    const facts = entryFacts({ status, headers, requestedMs: nowMs, receivedMs: nowMs });
    return decideReuse(facts, requests(ownLifetimeMs), nowMs + ageMs).kind;
  };
  assert.equal(kind({}, dayMs, dayMs - 1), "fresh");
  assert.equal(kind({}, dayMs, dayMs), "revalidate");
  assert.equal(kind({}, Number.POSITIVE_INFINITY, 1000 * dayMs), "fresh");
  const unchanged = { "last-modified": at(nowMs - 10 * dayMs) };
  assert.equal(kind(unchanged, 0, 0), "revalidate");
  assert.equal(kind(unchanged, 2 * dayMs, 2 * dayMs - 1), "fresh");
  fc.assert(
    fc.property(
      fc.constantFrom("max-age=60", "max-age=0", "no-cache", "max-age=60, must-revalidate"),
      fc.integer({ min: 0, max: 10 * dayMs }),
      fc.integer({ min: 0, max: 120_000 }),
      (control, ownLifetimeMs, ageMs) => {
        const headers = { "cache-control": control };
        const expected = decideReuse(entry(headers), requestControl(""), nowMs + ageMs).kind;
        assert.equal(kind(headers, ownLifetimeMs, ageMs), expected);
      },
    ),
  );
  assert.equal(kind({ expires: "0" }, dayMs, 0), "revalidate");
  assert.equal(kind({}, dayMs, 0, 503), "revalidate");
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

for (const status of [100, 199, 304, 401, 407, 416, 428, 429, 431, 511, 600]) {
  test(`a ${status} is never stored`, () => {
    assert.equal(storable({ "cache-control": "public, max-age=60", etag: '"a"' }, { status }), false);
  });
}

function lifetimeMs(headers: HeaderFields, status = 200): number {
  const control = responseControl(headers["cache-control"]);
  return freshnessLifetimeMs({ status, headers, receivedMs: nowMs, responseControl: control });
}

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

test("a stored response may be served without the server, unless a directive requires the server", () => {
  const decided = (permitted: string, requested = "") =>
    decideReuse(entry({ "cache-control": permitted }), requestControl(requested), nowMs + 100_000);
  const revalidate = { kind: "revalidate", mayServeOnError: false, mayServeDisconnected: true };
  assert.deepEqual(decided("max-age=60"), revalidate);
  assert.deepEqual(decided("max-age=60, stale-if-error=90"), { ...revalidate, mayServeOnError: true });
  for (const strict of ["max-age=60, must-revalidate", "max-age=200, no-cache"])
    assert.deepEqual(decided(strict), { ...revalidate, mayServeDisconnected: false });
});

test("a redirect that must be understood may be stored", () => {
  const storable = (status: number) =>
    isStorable({
      ...{ method: "GET", url: "http://a.example/", status, requestedMs: nowMs, receivedMs: nowMs },
      headers: { "cache-control": "max-age=60, must-understand, no-store" },
      requestControl: requestControl(undefined),
      responseControl: responseControl("max-age=60, must-understand, no-store"),
    });
  assert.deepEqual([200, 302, 303, 307, 305].map(storable), [true, true, true, true, false]);
});
