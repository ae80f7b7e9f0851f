import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";

test("when all probes are running the denial estimates the end of the first, not the end of its lease", async () => {
  const { registry, time } = setUp();
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, role: "artifact", status: 503 });
  await time.advance(60_000);
  registry.allow({ host, role: "artifact", timeoutMs: 90_000 });
  registry.allow({ host, role: "artifact", timeoutMs: 10_000 });
  const retryAfterMs = () => registry.check({ host, role: "artifact" })?.retryAfterMs;
  assert.equal(retryAfterMs(), 1000);
  await time.advance(1000);
  assert.equal(retryAfterMs(), 1000);
  await time.advance(3000);
  assert.equal(retryAfterMs(), 4000);
  await time.advance(6000);
  // The lease of the second ends after 15 s.
  assert.equal(retryAfterMs(), 5000);
  assert.equal(registry.check({ host, role: "artifact" })?.constraint.limit, "probe in flight");
  assert.match(
    String(registry.check({ host, role: "artifact" })?.error()),
    /all trial calls are in flight, next one in about 5.0 s/,
  );
});

test("the remaining time is rounded up, so that a call at its end is not refused again", async () => {
  const { registry, time } = setUp();
  registry.open(host, 1);
  await time.advance(999.5);
  assert.equal(registry.check({ host })?.retryAfterMs, 1);
  assert.equal(registry.remainingMs(host), 1);
});
