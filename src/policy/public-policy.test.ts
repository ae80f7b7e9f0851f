import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy, RateLimiter } from "../index.ts";

test("a loaded policy has rows, explanations, warnings and a hash, and its options make a limiter", async () => {
  const policy = await loadPolicy({
    ratelimits: { extends: "none", hosts: { "a.example": { metadata: { rates: "1/3SECOND", max_delay_ms: 150 } } } },
  });
  assert.equal(policy.rows().find(({ host }) => host === "a.example")?.rates, "1/3SECOND");
  const values = policy.explain("A.example");
  assert.equal(values.find(({ field }) => field === "max_delay_ms")?.value, 150);
  assert.equal(values.find(({ field }) => field === "breaker.rolling_window.window_s")?.value, 30);
  assert.match(policy.warnings()[0] ?? "", /^a\.example metadata: max_delay_ms 150 is less than/);
  assert.match(policy.configHash, /^[0-9a-f]{16}$/);
  assert.doesNotThrow(() => new RateLimiter(policy.ratelimits.options));
});
