import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";

test("when all probes are running the denial ends with the first probe lease", async () => {
  const { registry, time } = setUp();
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, role: "artifact", status: 503 });
  await time.advance(60_000);
  registry.allow({ host, role: "artifact", timeoutMs: 90_000 });
  registry.allow({ host, role: "artifact", timeoutMs: 10_000 });
  const denial = registry.check({ host, role: "artifact" });
  assert.equal(denial?.retryAfterMs, 15_000);
  assert.equal(denial?.constraint.limit, "probe in flight");
});

test("the remaining time is rounded up, so that a call at its end is not refused again", async () => {
  const { registry, time } = setUp();
  registry.open(host, 1);
  await time.advance(999.5);
  assert.equal(registry.check({ host })?.retryAfterMs, 1);
  assert.equal(registry.remainingMs(host), 1);
});
