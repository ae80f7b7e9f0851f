import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import CachePolicy from "http-cache-semantics";
import { requestControl, responseControl } from "./cache-control.ts";
import { ageMs, decideReuse, type EntryFacts, entryFacts, freshnessLifetimeMs, isStorable } from "./freshness.ts";
import type { HeaderFields } from "./stored-fields.ts";

const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0);
const dayMs = 86_400_000;
const at = (ms: number) => new Date(ms).toUTCString();
const silent = requestControl(undefined);

function storable(headers: HeaderFields, { status = 200, method = "GET", asking = "" } = {}): boolean {
  return isStorable({
    method,
    status,
    headers,
    receivedMs: nowMs,
    requestControl: requestControl(asking),
    responseControl: responseControl(headers["cache-control"]),
  });
}

function lifetimeMs(headers: HeaderFields, status = 200): number {
  const control = responseControl(headers["cache-control"]);
  return freshnessLifetimeMs({ status, headers, receivedMs: nowMs, responseControl: control });
}

/** What came just now, with these fields. */
function entry(headers: HeaderFields): EntryFacts {
  return entryFacts({ status: 200, headers, requestedMs: nowMs, receivedMs: nowMs });
}

/** The verdict on a response with this `Cache-Control`, so many seconds after it came. */
function verdict(permitting: string, asking: string, ageS: number): string {
  const found = decideReuse(entry({ "cache-control": permitting }), requestControl(asking), nowMs + ageS * 1000);
  return found.kind === "revalidate" && found.mayServeOnError ? "revalidate or serve" : found.kind;
}

// What is stored

test("a GET is stored, and nothing else is", () => {
  const headers = { "cache-control": "max-age=60" };
  assert.equal(storable(headers), true);
  for (const method of ["HEAD", "POST", "PUT", "get", "OPTIONS"]) assert.equal(storable(headers, { method }), false);
});

test("no-store, of the request or of the response, is obeyed", () => {
  assert.equal(storable({ "cache-control": "max-age=60" }, { asking: "no-store" }), false);
  assert.equal(storable({ "cache-control": "max-age=60, no-store" }), false);
});

test("must-understand lifts no-store for statuses we understand, and forbids the others", () => {
  const headers = { "cache-control": "max-age=60, no-store, must-understand" };
  assert.equal(storable(headers), true);
  assert.equal(storable(headers, { status: 307 }), true);
  assert.equal(storable(headers, { status: 499 }), false);
  assert.equal(storable({ "cache-control": "max-age=60, must-understand" }, { status: 499 }), false);
});

test("a response that varies on everything is not stored", () => {
  assert.equal(storable({ "cache-control": "max-age=60", vary: "Accept, *" }), false);
  assert.equal(storable({ "cache-control": "max-age=60", vary: "Accept" }), true);
});

test("a response that can never be reused nor asked about is not stored", () => {
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
  test(`a ${status} is stored only while it is fresh by its own word`, () => {
    assert.equal(storable({ etag: '"a"', "last-modified": at(nowMs - dayMs) }, { status }), false);
    assert.equal(storable({ etag: '"a"', "cache-control": "max-age=0, must-revalidate" }, { status }), false);
    assert.equal(storable({ etag: '"a"', "cache-control": "max-age=60, no-cache" }, { status }), false);
    assert.equal(storable({ "cache-control": "max-age=60" }, { status }), true);
    assert.equal(storable({ expires: at(nowMs + 1000) }, { status }), true);
    assert.equal(storable({ "cache-control": "public", "last-modified": at(nowMs - dayMs) }, { status }), true);
  });
}

for (const status of [100, 199, 206, 304, 401, 407, 428, 429, 431, 511, 600]) {
  test(`a ${status} is never stored`, () => {
    assert.equal(storable({ "cache-control": "public, max-age=60", etag: '"a"' }, { status }), false);
  });
}

// How long it is fresh

test("max-age is the lifetime, and Expires then means nothing", () => {
  assert.equal(lifetimeMs({ "cache-control": "max-age=60" }), 60_000);
  assert.equal(lifetimeMs({ "cache-control": "max-age=60", expires: "0" }), 60_000);
  assert.equal(lifetimeMs({ "cache-control": "max-age=0", expires: at(nowMs + dayMs) }), 0);
  assert.equal(lifetimeMs({ "cache-control": "max-age=x", expires: at(nowMs + dayMs) }), 0);
});

test("s-maxage is for shared caches", () => {
  assert.equal(lifetimeMs({ "cache-control": "s-maxage=60" }), 0);
  assert.equal(lifetimeMs({ "cache-control": "s-maxage=60, max-age=5" }), 5000);
});

test("Expires is measured from the response's own Date, or else from when it came", () => {
  const expires = at(nowMs + 60_000);
  assert.equal(lifetimeMs({ expires }), 60_000);
  assert.equal(lifetimeMs({ expires, date: at(nowMs - 60_000) }), 120_000);
  assert.equal(lifetimeMs({ expires, date: "yesterday" }), 60_000);
  assert.equal(lifetimeMs({ expires: [expires, expires] }), 60_000);
});

test("an Expires in the past, that is no date, or that contradicts itself means stale", () => {
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

test("a silent response is fresh for a tenth of the time since it last changed, a day at most", () => {
  assert.equal(lifetimeMs({ "last-modified": at(nowMs - 100_000) }), 10_000);
  assert.equal(lifetimeMs({ "last-modified": at(nowMs - 100_000), date: at(nowMs - 50_000) }), 5000);
  assert.equal(lifetimeMs({ "last-modified": at(nowMs - 1000 * dayMs) }), dayMs);
  assert.equal(lifetimeMs({ "last-modified": at(nowMs + 1000) }), 0);
  assert.equal(lifetimeMs({ "last-modified": "long ago" }), 0);
  assert.equal(lifetimeMs({ etag: '"a"' }), 0);
});

test("nothing is guessed for a status that does not allow it, unless the response is public", () => {
  const headers = { "last-modified": at(nowMs - 100_000) };
  assert.equal(lifetimeMs(headers, 404), 10_000);
  assert.equal(lifetimeMs(headers, 302), 0);
  assert.equal(lifetimeMs({ ...headers, "cache-control": "public" }, 302), 10_000);
});

test("no-cache leaves no freshness, and immutable gives none", () => {
  assert.equal(lifetimeMs({ "cache-control": "max-age=60, no-cache" }), 0);
  assert.equal(lifetimeMs({ "cache-control": "immutable" }), 0);
});

// How old it is

const born = { requestedMs: nowMs - 200, receivedMs: nowMs, dateMs: nowMs, ageHeaderS: undefined };

test("the age counts from when the request went out", () => {
  assert.equal(ageMs(nowMs, born), 200);
  assert.equal(ageMs(nowMs + 5000, born), 5200);
});

test("the age that caches on the way report is added to it", () => {
  assert.equal(ageMs(nowMs + 5000, { ...born, ageHeaderS: 30 }), 35_200);
});

test("a Date further back than that counts instead", () => {
  assert.equal(ageMs(nowMs, { ...born, dateMs: nowMs - 60_000 }), 60_000);
  assert.equal(ageMs(nowMs, { ...born, dateMs: nowMs - 60_000, ageHeaderS: 90 }), 90_200);
  assert.equal(ageMs(nowMs, { ...born, dateMs: undefined }), 200);
});

test("a server whose clock runs ahead makes nothing younger", () => {
  assert.equal(ageMs(nowMs, { ...born, dateMs: nowMs + dayMs }), 200);
});

test("a wall clock that was set back makes nothing younger, and what lies far ahead of it is old", () => {
  assert.equal(ageMs(nowMs, { ...born, requestedMs: nowMs + dayMs }), 0);
  assert.equal(ageMs(nowMs - 1000, born), 1200);
  assert.equal(ageMs(nowMs - 5000 * dayMs, born), 5000 * dayMs + 200);
});

test("no clocks make an age negative, nor does time make it smaller", () => {
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

test("Age is a number of seconds, the first of a list, or ignored", () => {
  assert.equal(entry({ age: "30" }).ageHeaderS, 30);
  assert.equal(entry({ age: "30, 0" }).ageHeaderS, 30);
  assert.equal(entry({ age: [" 30 ,1", "0"] }).ageHeaderS, 30);
  for (const age of ["abc", "-30", "7.5", "", "x,30"]) assert.equal(entry({ age }).ageHeaderS, undefined);
});

test("the facts of an entry are read from its fields", () => {
  const headers = { "cache-control": "max-age=60, immutable", date: at(nowMs - 1000), age: "2" };
  const control = responseControl("max-age=60, immutable");
  const times = { requestedMs: nowMs - 5, receivedMs: nowMs };
  assert.deepEqual(entryFacts({ status: 200, headers, ...times }), {
    ...times,
    dateMs: nowMs - 1000,
    ageHeaderS: 2,
    lifetimeMs: 60_000,
    control,
  });
});

// What to do with it

const table: readonly (readonly [sentence: string, permitting: string, asking: string, ageS: number, kind: string])[] =
  [
    ["what is fresh is served", "max-age=60", "", 59.999, "fresh"],
    ["what has reached its lifetime is stale", "max-age=60", "", 60, "revalidate"],
    ["must-revalidate does not matter while it is fresh", "max-age=60, must-revalidate", "", 30, "fresh"],
    ["no-cache in the response always asks", "max-age=60, no-cache, stale-if-error=60", "max-stale", 0, "revalidate"],
    ["no-cache in the request always asks", "max-age=60, immutable, stale-if-error=60", "no-cache", 0, "revalidate"],

    ["an answer as old as the request takes is served", "max-age=60", "max-age=30", 30, "fresh"],
    ["an older one is not", "max-age=60", "max-age=30", 30.001, "revalidate"],
    ["a reload asks at once", "max-age=60", "max-age=0", 0, "revalidate"],
    ["a reload does not ask for what is immutable", "max-age=60, immutable", "max-age=0", 30, "fresh"],
    ["unless it is stale", "max-age=60, immutable", "max-age=0", 60, "revalidate"],
    ["an answer that stays fresh long enough is served", "max-age=60", "min-fresh=30", 30, "fresh"],
    ["one that does not is not", "max-age=60", "min-fresh=30", 30.001, "revalidate"],
    ["an immutable one must stay fresh, too", "max-age=60, immutable", "min-fresh=30", 31, "revalidate"],
    ["who wants it fresh does not want it stale", "max-age=60", "min-fresh=1, max-stale", 61, "revalidate"],

    ["a bare max-stale takes it however stale", "max-age=60", "max-stale", 1e6, "stale"],
    ["max-stale takes it that stale", "max-age=60", "max-stale=10", 70, "stale"],
    ["and no staler", "max-age=60", "max-stale=10", 70.001, "revalidate"],
    ["max-stale=0 takes nothing stale", "max-age=60", "max-stale=0", 60, "revalidate"],
    ["max-stale does not matter while it is fresh", "max-age=60", "max-stale", 30, "fresh"],
    ["max-age and max-stale both hold", "max-age=60", "max-age=70, max-stale=60", 65, "stale"],
    ["and the age is the smaller one here", "max-age=60", "max-age=70, max-stale=60", 71, "revalidate"],
    ["must-revalidate forbids max-stale", "max-age=60, must-revalidate", "max-stale", 61, "revalidate"],

    ["a grace for revalidation is used", "max-age=60, stale-while-revalidate=10", "", 70, "stale-while-revalidate"],
    ["and ends", "max-age=60, stale-while-revalidate=10", "", 70.001, "revalidate"],
    ["a grace of 0 is none", "max-age=60, stale-while-revalidate=0", "", 60, "revalidate"],
    ["must-revalidate forbids it", "max-age=60, stale-while-revalidate=10, must-revalidate", "", 61, "revalidate"],
    ["who names an age wants nothing stale", "max-age=60, stale-while-revalidate=10", "max-age=99", 61, "revalidate"],
    [
      "who names a staleness wants none beyond",
      "max-age=60, stale-while-revalidate=10",
      "max-stale=1",
      62,
      "revalidate",
    ],
    ["who takes it stale spares the server", "max-age=60, stale-while-revalidate=10", "max-stale=5", 62, "stale"],

    ["a response may permit itself on errors", "max-age=60, stale-if-error=10", "", 70, "revalidate or serve"],
    ["for as long as it says", "max-age=60, stale-if-error=10", "", 70.001, "revalidate"],
    ["a request may permit it, too", "max-age=60", "stale-if-error=10", 70, "revalidate or serve"],
    ["the longer of both counts", "max-age=60, stale-if-error=1", "stale-if-error=10", 70, "revalidate or serve"],
    [
      "a fresh one that is too old may do on errors",
      "max-age=60, stale-if-error=1",
      "max-age=0",
      5,
      "revalidate or serve",
    ],
    ["must-revalidate forbids that", "max-age=60, must-revalidate", "stale-if-error=99", 61, "revalidate"],
  ];

for (const [sentence, permitting, asking, ageS, kind] of table) {
  test(`${sentence} (${permitting} | ${asking || "silent"} | ${ageS} s: ${kind})`, () => {
    assert.equal(verdict(permitting, asking, ageS), kind);
  });
}

test("an entry from a clock that ran ahead is asked about, not served for years", () => {
  assert.equal(decideReuse(entry({ "cache-control": "max-age=3600" }), silent, nowMs - 300 * dayMs).kind, "revalidate");
});

// Laws

const seconds = fc.integer({ min: 0, max: 100 });
const permitting = fc
  .subarray(["no-cache", "must-revalidate", "immutable", "max-age", "stale-if-error", "stale-while-revalidate"])
  .chain(names =>
    fc.tuple(...names.map(name => seconds.map(value => (/a.e|-if-|while/.test(name) ? `${name}=${value}` : name)))),
  )
  .map(parts => parts.join());
const asking = fc
  .subarray(["no-cache", "max-age", "min-fresh", "max-stale", "stale-if-error"])
  .chain(names =>
    fc.tuple(...names.map(name => seconds.map(value => (name === "no-cache" ? name : `${name}=${value}`)))),
  )
  .map(parts => parts.join());

test("nothing stale is served without somebody's leave, and never against the server's", () => {
  fc.assert(
    fc.property(permitting, asking, fc.integer({ min: 0, max: 250 }), (may, asks, ageS) => {
      const control = responseControl(may);
      const request = requestControl(asks);
      const isStale = ageS >= (control.noCache ? 0 : (control.maxAgeS ?? 0));
      const kind = verdict(may, asks, ageS);
      if (kind === "fresh") assert.ok(!isStale && !control.noCache && !request.noCache);
      if (isStale && (control.mustRevalidate || control.noCache || request.noCache)) assert.equal(kind, "revalidate");
      if (kind === "stale") assert.ok(request.maxStaleS > 0);
      if (kind === "stale-while-revalidate") assert.ok(control.staleWhileRevalidateS > 0);
      if (kind === "revalidate or serve") assert.ok(control.staleIfErrorS + request.staleIfErrorS > 0);
    }),
    { numRuns: 2000 },
  );
});

test("as time passes, what had to be asked for is never served again", () => {
  const boldness = ["revalidate", "revalidate or serve", "stale-while-revalidate", "stale", "fresh"];
  fc.assert(
    fc.property(permitting, asking, seconds, seconds, (may, asks, ageS, laterS) => {
      const [now, later] = [verdict(may, asks, ageS), verdict(may, asks, ageS + laterS)];
      // Of the two stale ones the request's leave comes first and may end first; both serve.
      const rank = (kind: string) => Math.min(boldness.indexOf(kind), kind === "fresh" ? 4 : 2);
      assert.ok(rank(later) <= rank(now), `${now}, then ${later}`);
    }),
    { numRuns: 2000 },
  );
});

// The oracle

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
 * http-cache-semantics, asked as a private cache, where both of us should agree. Where we must differ, and why, so that
 * it is left out here and tested above:
 * - it knows neither must-understand nor names in upper case, and stores what varies on `*`, though it never serves it;
 * - it gives every immutable response a lifetime, in which it takes milliseconds for seconds;
 * - it obeys a Pragma in a response, which the standard says nothing about;
 * - it has a list of statuses that it understands, and never stores another, however fresh;
 * - it does not cap a guess, and reads as a date whatever the engine does.
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
      const asks = noStore ? "no-store" : "";
      const request = { method: "GET", url: "/", headers: asks === "" ? {} : { "cache-control": asks } };
      const oracle = new Oracle(request, { status, headers }, { shared: false });

      const isGuess = responseControl(control).maxAgeS === undefined && expires === undefined;
      const expectedMs = Math.floor(oracle.maxAge() * 1000);
      if (oracle.storable())
        assert.equal(lifetimeMs(headers, status), isGuess ? Math.min(expectedMs, dayMs) : expectedMs);

      // It stores what is of no use, too: without freshness or validator, or a redirect that is never fresh.
      const isOfUse = [302, 303, 307].includes(status) ? oracle.maxAge() > 0 : !isGuess || lastModified || etag;
      assert.equal(storable(headers, { status, asking: asks }), oracle.storable() && Boolean(isOfUse));
      if (oracle.storable() && isOfUse) stored += 1;
    }),
    { numRuns: 3000 },
  );
  assert.ok(stored > 500);
});
