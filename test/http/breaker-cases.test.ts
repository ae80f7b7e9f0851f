/** Failures that users reported, each with real servers. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, serve, until } from "./kit.ts";

for (const reason of ["Retry-After", "rolling window"] as const) {
  test(`after a cooldown (${reason}) calls resume with a trial call, then double`, async t => {
    const time = new FakeTime();
    const held: ServerResponse[] = [];
    let isDown = true;
    const server = await serve(t, (_, response) => {
      if (!isDown) held.push(response);
      else if (reason === "Retry-After") response.writeHead(429, { "retry-after": "60" }).end();
      else response.writeHead(503).end();
    });
    const hub = await hubFor(t, {
      time,
      random: () => 0,
      retry: false,
      cache: false,
      breakers: {
        defaults: { fail_max: 100 },
        advanced: { rolling_window: { threshold_failures: 3, cooldown_s: 60 }, ramp_up: { max_calls: 16 } },
      },
    });
    const failures = reason === "Retry-After" ? 1 : 3;
    for (let call = 0; call < failures; call += 1) await (await hub.fetch(server.origin)).text();
    isDown = false;
    let answered = 0;
    const calls = Array.from({ length: 50 }, async (_, number) => {
      const response = await hub.fetch(`${server.origin}/${number}`, { maxWaitMs: 600_000 });
      await response.text();
      answered += 1;
    });
    await until(() => hub.snapshot().waiting === 50);
    await time.advance(60_000);
    for (const step of [1, 2, 4, 8, 35]) {
      await until(() => held.length === step);
      // No further request arrives before an answer.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve));
      assert.equal(held.length, step);
      const sent = answered + step;
      for (const response of held.splice(0)) response.end("ok");
      await until(() => answered === sent);
    }
    await Promise.all(calls);
  });
}

test("the snapshot of a key counts calls that wait for an open circuit, and says when a new one could start", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(503).end());
  const hub = await hubFor(t, { time, random: () => 0, retry: false, cache: false });
  for (let call = 0; call < 5; call += 1) await (await hub.fetch(server.origin)).text();
  await time.advance(5000);
  const calls = Array.from({ length: 34 }, (_, number) =>
    hub.fetch(`${server.origin}/${number}`, { maxWaitMs: 600_000 }).then(response => response.text()),
  );
  await until(() => hub.snapshot().waiting === 34);
  const [key] = hub.snapshot().keys;
  assert.equal(key?.waiting, 34);
  assert.equal(key?.estimatedWaitMs, 40_000);
  assert.deepEqual(key?.constraint, { kind: "breaker", owner: "127.0.0.1", limit: "open circuit (failures)" });
  const ended = Promise.allSettled(calls);
  await hub.destroy();
  await ended;
});
