import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { requestControl, responseControl } from "./cache-control.ts";
import { type EntryFacts, entryFacts } from "./freshness.ts";
import { decideReuse } from "./reuse.ts";
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
