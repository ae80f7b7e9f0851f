import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  deltaSeconds,
  isCacheMode,
  type RequestControl,
  type ResponseControl,
  requestControl,
  responseControl,
  withCacheMode,
} from "./cache-control.ts";
import { entryFacts } from "./freshness.ts";
import { decideReuse } from "./reuse.ts";

const noRequestDirectives: RequestControl = {
  noStore: false,
  noCache: false,
  onlyIfCached: false,
  ignoresStored: false,
  acceptsAnyAge: false,
  maxAgeS: Number.POSITIVE_INFINITY,
  minFreshS: 0,
  maxStaleS: 0,
  staleIfErrorS: 0,
  ownLifetimeMs: undefined,
};
const noResponseDirectives: ResponseControl = {
  noStore: false,
  noCache: false,
  mustRevalidate: false,
  mustUnderstand: false,
  immutable: false,
  isPublic: false,
  isPrivate: false,
  maxAgeS: undefined,
  staleIfErrorS: 0,
  staleWhileRevalidateS: 0,
};

function assertRequest(text: string | readonly string[], expected: Partial<RequestControl>): void {
  assert.deepEqual(requestControl(text), { ...noRequestDirectives, ...expected }, String(text));
}

function assertResponse(text: string | readonly string[], expected: Partial<ResponseControl>): void {
  assert.deepEqual(responseControl(text), { ...noResponseDirectives, ...expected }, String(text));
}

test("without directives no limit applies", () => {
  for (const nothing of [undefined, "", " ", ",", ", ,\t,", []]) {
    assert.deepEqual(requestControl(nothing), noRequestDirectives);
    assert.deepEqual(responseControl(nothing), noResponseDirectives);
  }
});

test("every directive of a request is parsed", () => {
  assertRequest("no-store", { noStore: true });
  assertRequest("no-cache", { noCache: true });
  assertRequest("only-if-cached", { onlyIfCached: true });
  assertRequest("max-age=60", { maxAgeS: 60 });
  assertRequest("min-fresh=5", { minFreshS: 5 });
  assertRequest("max-stale=7", { maxStaleS: 7 });
  assertRequest("stale-if-error=8", { staleIfErrorS: 8 });
});

test("every directive of a response is parsed", () => {
  assertResponse("no-store", { noStore: true });
  assertResponse("no-cache", { noCache: true });
  assertResponse("must-revalidate", { mustRevalidate: true });
  assertResponse("must-understand", { mustUnderstand: true });
  assertResponse("immutable", { immutable: true });
  assertResponse("public", { isPublic: true });
  assertResponse("private", { isPrivate: true });
  assertResponse("max-age=60", { maxAgeS: 60 });
  assertResponse("stale-if-error=8", { staleIfErrorS: 8 });
  assertResponse("stale-while-revalidate=9", { staleWhileRevalidateS: 9 });
});

test("names of directives are case-insensitive", () => {
  assertResponse("MaX-AgE=60, NO-CACHE, Must-Revalidate", { maxAgeS: 60, noCache: true, mustRevalidate: true });
});

test("several directives, in one field or in several, are all parsed", () => {
  assertResponse("public, max-age=60,immutable", { isPublic: true, maxAgeS: 60, immutable: true });
  assertResponse(["public", "max-age=60, immutable"], { isPublic: true, maxAgeS: 60, immutable: true });
  assertResponse(",,public ,\tmax-age=60,", { isPublic: true, maxAgeS: 60 });
});

test("directives separated by spaces instead of commas all count", () => {
  assertResponse("no-cache no-store must-revalidate", { noCache: true, noStore: true, mustRevalidate: true });
  assertResponse("max-age=60 must-revalidate", { maxAgeS: 60, mustRevalidate: true });
});

test("directives for shared caches and unknown directives are ignored", () => {
  assertResponse("s-maxage=60, proxy-revalidate, no-transform, pre-check=0, community=UCI", {});
  assertResponse("xmax-age=60, max-agex=60", {});
  assertResponse("__proto__, constructor=1", {});
});

test("a number may be quoted", () => {
  assertResponse('max-age="60"', { maxAgeS: 60 });
  assertResponse('max-age="6\\0"', { maxAgeS: 60 });
  assertResponse("max-age='60'", { maxAgeS: 0 });
});

test("a directive inside quotes does not count", () => {
  assertResponse('ext="no-store, max-age=100", max-age=1', { maxAgeS: 1 });
  assertResponse('max-age=1, ext="a\\", no-store, max-age=100"', { maxAgeS: 1 });
  assertResponse('ext="a\\\\", no-store', { noStore: true });
});

test("a quote without an end does not hide the directives after it", () => {
  assertResponse('ext="a, no-store', { noStore: true });
  assertResponse('ext="a\\", no-store', { noStore: true });
  assertResponse('max-age="60, no-store', { maxAgeS: 0, noStore: true });
});

test("no-cache and private with field names count as without field names", () => {
  assertResponse('no-cache="set-cookie, x", private="x"', { noCache: true, isPrivate: true });
  assertResponse("no-cache=set-cookie", { noCache: true });
});

for (const bad of ["-1", "+1", "1.5", "abc", "60a", "a60", "0x10", "1e3", "", " 60", "٣", '"', '"-1"', '""']) {
  test(`a max-age of ${JSON.stringify(bad)} counts as 0`, () => {
    assert.equal(responseControl(`max-age=${bad}`).maxAgeS, 0);
    assert.equal(requestControl(`max-age=${bad}`).maxAgeS, 0);
  });
}

test("a max-age without a number, or with spaces around =, counts as 0", () => {
  assertResponse("max-age", { maxAgeS: 0 });
  assertResponse("max-age =60", { maxAgeS: 0 });
  assertResponse("max-age= 60", { maxAgeS: 0 });
});

test("other invalid numbers count as the strictest value", () => {
  assertRequest("min-fresh=soon", { minFreshS: 2 ** 31 });
  assertRequest("min-fresh", { minFreshS: 2 ** 31 });
  assertRequest("max-stale=soon", { maxStaleS: 0 });
  assertRequest("stale-if-error", { staleIfErrorS: 0 });
  assertResponse("stale-if-error=-1, stale-while-revalidate=x", {});
});

test("max-stale without a value accepts any staleness", () => {
  assertRequest("max-stale", { maxStaleS: Number.POSITIVE_INFINITY });
  assertRequest("max-stale, max-stale=5", { maxStaleS: 5 });
});

test("larger numbers count as 2^31", () => {
  assertResponse("max-age=2147483647", { maxAgeS: 2 ** 31 - 1 });
  assertResponse("max-age=2147483648", { maxAgeS: 2 ** 31 });
  assertResponse("max-age=99999999999", { maxAgeS: 2 ** 31 });
  assertResponse(`max-age=${"9".repeat(5000)}`, { maxAgeS: 2 ** 31 });
});

test("the strictest value of a repeated directive counts", () => {
  assertResponse("max-age=60, max-age=5, max-age=10", { maxAgeS: 5 });
  assertResponse("max-age=60, max-age=x", { maxAgeS: 0 });
  assertResponse("stale-if-error=9, stale-if-error=3", { staleIfErrorS: 3 });
  assertRequest("min-fresh=1, min-fresh=9, min-fresh=3", { minFreshS: 9 });
  assertRequest(["max-stale=9", "max-stale=3"], { maxStaleS: 3 });
});

test("Pragma: no-cache counts for a request without Cache-Control, and for nothing else", () => {
  assert.equal(requestControl(undefined, "no-cache").noCache, true);
  assert.equal(requestControl(undefined, ["x=1", "No-Cache"]).noCache, true);
  assert.equal(requestControl(undefined, "no-cached").noCache, false);
  assert.equal(requestControl(undefined, "max-age=0").maxAgeS, Number.POSITIVE_INFINITY);
  assert.equal(requestControl("max-age=60", "no-cache").noCache, false);
  assert.equal(requestControl("", "no-cache").noCache, false);
});

test("the parsed directives are frozen", () => {
  assert.ok(Object.isFrozen(requestControl("no-store")));
  assert.ok(Object.isFrozen(responseControl("no-store")));
  assert.ok(Object.isFrozen(requestControl(undefined)));
  assert.ok(Object.isFrozen(responseControl(undefined)));
});

const piece = fc.oneof(
  fc.string(),
  fc.constantFrom(
    ...'max-age max-stale min-fresh no-store no-cache = , " \\ \t 60 -1 99999999999'.split(" "),
    " ",
    '="',
    '\\"',
  ),
);
const field = fc.array(piece, { maxLength: 12 }).map(pieces => pieces.join(""));

test("any text gives valid numbers", () => {
  fc.assert(
    fc.property(fc.oneof(field, fc.array(field)), fc.option(field, { nil: undefined }), (value, pragma) => {
      const { maxAgeS, minFreshS, maxStaleS, staleIfErrorS } = requestControl(value, pragma);
      const permitted = responseControl(value);
      const seconds = [minFreshS, staleIfErrorS, permitted.staleIfErrorS, permitted.staleWhileRevalidateS];
      seconds.push(permitted.maxAgeS ?? 0);
      for (const limit of [maxAgeS, maxStaleS]) seconds.push(limit === Number.POSITIVE_INFINITY ? 0 : limit);
      for (const second of seconds) assert.ok(Number.isInteger(second) && second >= 0 && second <= 2 ** 31);
    }),
    { numRuns: 3000 },
  );
});

test("an additional directive never makes the result less strict", () => {
  fc.assert(
    fc.property(field, field, (first, second) => {
      // A quote in the first text may contain the second one.
      const plain = first.replaceAll('"', "");
      const [one, both] = [requestControl(plain), requestControl(`${plain},${second}`)];
      assert.ok(both.maxAgeS <= one.maxAgeS && both.minFreshS >= one.minFreshS);
      assert.ok(Number(both.noStore) >= Number(one.noStore) && Number(both.noCache) >= Number(one.noCache));
      assert.ok((responseControl(`${plain},${second}`).maxAgeS ?? 0) <= (responseControl(plain).maxAgeS ?? Infinity));
    }),
  );
});

test("well-formed directives are parsed to their values, in any order and case", () => {
  const said = fc.record({
    noStore: fc.boolean(),
    noCache: fc.boolean(),
    maxAgeS: fc.nat(),
    minFreshS: fc.nat(),
    ext: fc.string(),
  });
  fc.assert(
    fc.property(
      said,
      fc.boolean(),
      fc.boolean(),
      ({ noStore, noCache, maxAgeS, minFreshS, ext }, isUpperCase, quoted) => {
        const quote = quoted ? '"' : "";
        const text = [
          `min-fresh=${quote}${minFreshS}${quote}`,
          ...(noStore ? ["no-store"] : []),
          `ext="${ext.replaceAll(/["\\]/g, "\\$&")}"`,
          ...(noCache ? ["no-cache"] : []),
          `max-age=${quote}${maxAgeS}${quote}`,
        ].join(", ");
        assertRequest(isUpperCase ? text.toUpperCase() : text, { noStore, noCache, maxAgeS, minFreshS });
      },
    ),
  );
});

test("delta-seconds are digits only", () => {
  assert.equal(deltaSeconds("007"), 7);
  assert.equal(deltaSeconds("1".repeat(30)), 2 ** 31);
  for (const bad of ["", "-0", "1 ", "1.0", "1,2"]) assert.equal(deltaSeconds(bad), undefined);
});

test("a million characters are parsed in linear time", () => {
  // With quadratic parsing this test would take minutes.
  for (const unit of ['"', 'a="', 'a="\\', "\\", " ", ",", "a", "=", 'a="b" ', "max-age=1,"]) {
    const text = unit.repeat(1_000_000 / unit.length);
    assert.ok(Object.isFrozen(requestControl(text)));
    assert.ok(Object.isFrozen(responseControl(text)));
  }
});

const PLAIN = requestControl(undefined);

test("each mode of fetch sets its own directives and keeps those of the headers", () => {
  const given = requestControl("max-age=5");
  assert.equal(withCacheMode(given, "default"), given);
  assert.deepEqual(withCacheMode(given, "no-store"), { ...given, noStore: true });
  assert.deepEqual(withCacheMode(given, "reload"), { ...given, ignoresStored: true });
  assert.deepEqual(withCacheMode(given, "no-cache"), { ...given, maxAgeS: 0 });
  assert.deepEqual(withCacheMode(given, "force-cache"), { ...given, acceptsAnyAge: true });
  assert.deepEqual(withCacheMode(given, "only-if-cached"), { ...given, acceptsAnyAge: true, onlyIfCached: true });
});

test("only the modes of fetch are modes", () => {
  for (const value of ["Default", "", "nostore", undefined, null, 1]) assert.ok(!isCacheMode(value), String(value));
  assert.ok(isCacheMode("only-if-cached"));
});

test("force-cache serves a stored response of any age, also one that must be revalidated", () => {
  const request = withCacheMode(PLAIN, "force-cache");
  for (const control of ["max-age=60", "max-age=60, must-revalidate", "no-cache"]) {
    const headers = { "cache-control": control };
    const entry = entryFacts({ status: 200, headers, requestedMs: 0, receivedMs: 0 });
    assert.equal(decideReuse(entry, request, 10 ** 9).kind, "stale", control);
  }
});

test("a short field is parsed once, until 500 others were parsed, and a long one each time", () => {
  const text = "max-age=1, private";
  const first = responseControl(text);
  assert.equal(responseControl(text), first);
  for (let age = 0; age < 1000; age += 1) responseControl(`max-age=${age}, public`);
  assert.notEqual(responseControl(text), first);
  const padded = (length: number) => "no-cache".padEnd(length, "x");
  assert.equal(responseControl(padded(200)), responseControl(padded(200)));
  assert.notEqual(responseControl(padded(201)), responseControl(padded(201)));
});

test("as many short fields as are kept leave the first one known", () => {
  // Whatever is known from other tests is forgotten on the way.
  const known = (count: number) => {
    for (let age = 0; age < 500; age += 1) responseControl(`max-age=${age}, empty`);
    const first = responseControl("max-age=1, first");
    for (let age = 1; age < count; age += 1) responseControl(`max-age=${age}, other`);
    return responseControl("max-age=1, first") === first;
  };
  assert.deepEqual([known(2), known(501)], [true, false]);
});
