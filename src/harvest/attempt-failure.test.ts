import assert from "node:assert/strict";
import { test } from "node:test";
import { isTransientStatus } from "./attempt-failure.ts";

test("a 403 is temporary if the host announces a wait or has no quota left, as it is for the hub", () => {
  const date = "Wed, 18 Nov 2026 16:00:00 GMT";
  const later = "Wed, 18 Nov 2026 16:05:00 GMT";
  for (const headers of [
    { "retry-after": "20" },
    { "retry-after": later },
    { date, "retry-after": later },
    { "x-ratelimit-limit": "100", "x-ratelimit-remaining": "0" },
  ])
    assert.equal(isTransientStatus(403, headers), true, JSON.stringify(headers));
  for (const headers of [
    {},
    { "retry-after": "0" },
    { date: later, "retry-after": date },
    { "x-ratelimit-remaining": "7" },
    { "retry-after": "20", "memento-datetime": date },
  ])
    assert.equal(isTransientStatus(403, headers), false, JSON.stringify(headers));
  assert.equal(isTransientStatus(401, { "retry-after": "20" }), false);
});
