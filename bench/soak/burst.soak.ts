/**
 * 300 fetches at once over new connections, to a server in another process that enforces a rate by its own clock.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createHub } from "../../src/http/create-hub.ts";
import { startServer } from "./strict-server.ts";

const FETCHES = 300;
const GUARD_MS = 25;

function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

async function fetchAll(t: TestContext, perSecond: number, stallMs: number): Promise<void> {
  const rates = `${perSecond}/SECOND`;
  const server = await startServer(t, rates);
  const hub = await createHub({
    env: {},
    cache: false,
    retry: false,
    policy: {
      ratelimits: { extends: "none", defaults: { metadata: { rates, max_delay_ms: 120_000 } } },
      breakers: { extends: "none" },
    },
  });
  t.after(() => hub.destroy());
  if (stallMs > 0) setTimeout(block, 12_000, stallMs);
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: FETCHES }, async (_, n) => {
      const response = await hub.fetch(`${server.origin}/${n}`);
      await response.arrayBuffer();
    }),
  );
  const tookMs = performance.now() - startedMs;
  const windows = FETCHES / perSecond - 1;
  const bestMs = windows * (1000 + GUARD_MS) + stallMs;
  const { arrived, rejected, most } = await server.report();
  t.diagnostic(`${rejected} rejected, ${most} in the busiest second`);
  t.diagnostic(
    `${Math.round(tookMs)} ms, ${(tookMs / bestMs).toFixed(3)} of the fastest schedule with guard and stall, ${(tookMs / (windows * 1000 + stallMs)).toFixed(3)} of that without guard`,
  );
  assert.deepEqual({ arrived, rejected }, { arrived: FETCHES, rejected: 0 });
  assert.ok(tookMs <= bestMs * 1.03, "within 3 %");
}

test("300 fetches over new connections at 10/SECOND are never rejected", t => fetchAll(t, 10, 0));

test("300 fetches over new connections at 50/SECOND are never rejected", t => fetchAll(t, 50, 0));

test("300 fetches with the event loop blocked for 2 s in the middle are never rejected", t => fetchAll(t, 10, 2000));
