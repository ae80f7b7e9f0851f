/**
 * 300 fetches at once over new connections, to a server in another process that enforces 10/SECOND by its own clock.
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { createHub } from "../../src/http/create-hub.ts";

const RATE = "10/SECOND";
const FETCHES = 300;
const GUARD_MS = 25;

interface ServerReport {
  readonly arrived: number;
  readonly rejected: number;
  readonly most: number;
}

async function startServer(t: TestContext) {
  const child = fork(resolve(import.meta.dirname, "../../test/http/strict-server.ts"), [RATE]);
  t.after(() => child.kill());
  const [origin] = (await once(child, "message")) as [string];
  const report = async () => {
    child.send("report");
    const [seen] = (await once(child, "message")) as [ServerReport];
    return seen;
  };
  return { origin, report };
}

function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

async function fetchAll(t: TestContext, stallMs: number): Promise<void> {
  const server = await startServer(t);
  const hub = await createHub({
    env: {},
    cache: false,
    retry: false,
    policy: {
      ratelimits: { extends: "none", defaults: { metadata: { rates: RATE, max_delay_ms: 120_000 } } },
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
  const bestMs = 29 * (1000 + GUARD_MS) + stallMs;
  const { arrived, rejected, most } = await server.report();
  t.diagnostic(`${rejected} rejected, ${most} in the busiest second`);
  t.diagnostic(
    `${Math.round(tookMs)} ms, ${(tookMs / bestMs).toFixed(3)} of the fastest schedule with guard and stall`,
  );
  assert.deepEqual({ arrived, rejected }, { arrived: FETCHES, rejected: 0 });
  assert.ok(tookMs <= bestMs * 1.03, "within 3 %");
}

test("300 fetches over new connections are never rejected", t => fetchAll(t, 0));

test("300 fetches with the event loop blocked for 2 s in the middle are never rejected", t => fetchAll(t, 2000));
