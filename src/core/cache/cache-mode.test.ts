import assert from "node:assert/strict";
import { test } from "node:test";
import { requestControl } from "./cache-control.ts";
import { isCacheMode, withCacheMode } from "./cache-mode.ts";
import { entryFacts } from "./freshness.ts";
import { decideReuse } from "./reuse.ts";

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
