import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { RateLimiter } from "../limiter.ts";

// On the real clock: the test is about how a real network changes the time between two requests.

test("with run, a server counts no more than the limit in any window, cold connections included", async () => {
  const windowMs = 200;
  const arrivalsMs: number[] = [];
  const server = createServer((_, response) => {
    arrivalsMs.push(performance.now());
    response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const limiter = new RateLimiter({ defaults: { metadata: { rates: `5/${windowMs}ms`, guard_ms: 0 } } });
  const call = () =>
    limiter.run({ host: "127.0.0.1", maxWaitMs: Number.POSITIVE_INFINITY }, async () => {
      const response = await fetch(`http://127.0.0.1:${port}/`);
      return response.text();
    });
  try {
    const answers = await Promise.all(Array.from({ length: 30 }, call));
    assert.equal(answers.length, 30);
    for (const fromMs of arrivalsMs) {
      const inside = arrivalsMs.filter(ms => ms >= fromMs && ms < fromMs + windowMs).length;
      assert.ok(inside <= 5, `${inside} in ${windowMs} ms`);
    }
    assert.equal(limiter.snapshot().inFlight, 0);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
