/**
 * 500 requests at 100/SECOND + 300/5SECOND to a server in another process, while two threads use all the CPU time that
 * they get: ten runs. A late request must not be rejected, and rejections must not open the circuit.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { createHub } from "../../src/http/create-hub.ts";
import { startServer } from "./strict-server.ts";

const RATE = "100/SECOND+300/5SECOND";
const REQUESTS = 500;
const RUNS = 10;
const BUSY_THREADS = 2;

test("with two busy threads beside it no request is rejected and no circuit opens, in ten runs", async t => {
  const busy = Array.from({ length: BUSY_THREADS }, () => new Worker("for (;;);", { eval: true }));
  t.after(() => Promise.all(busy.map(worker => worker.terminate())));
  const results: { readonly rejected: number; readonly opened: number; readonly tookMs: number }[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const server = await startServer(t, RATE);
    const hub = await createHub({
      env: {},
      cache: false,
      policy: {
        ratelimits: { extends: "none", defaults: { metadata: { rates: RATE, max_delay_ms: 120_000 } } },
        breakers: { extends: "none" },
      },
    });
    let opened = 0;
    hub.listen(event => {
      if (event.event_type === "breaker_state_change" && event.new === "open") opened += 1;
    });
    const startedMs = performance.now();
    await Promise.all(
      Array.from({ length: REQUESTS }, async (_, n) => {
        const response = await hub.fetch(`${server.origin}/${n}`);
        await response.arrayBuffer();
      }),
    );
    const { rejected } = await server.report();
    results.push({ rejected, opened, tookMs: Math.round(performance.now() - startedMs) });
    await hub.close();
  }
  for (const { rejected, opened, tookMs } of results)
    t.diagnostic(`${rejected} rejected, ${opened} circuits opened, ${tookMs} ms`);
  assert.ok(results.every(({ rejected, opened }) => rejected === 0 && opened === 0));
});
