import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type ServerResponse } from "node:http";
import { test } from "node:test";
import { assertNothingLeft, hubFor, serve, until } from "../../../test/http/kit.ts";
import { RateLimitExceeded } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";

for (const isOpen of [false, true])
  test(`a trial call that waits for its jitter goes back to the queue when a cooldown of its partition begins${isOpen ? ", also while the circuit of another role is open for longer" : ""}`, async t => {
    const held: ServerResponse[] = [];
    const server = await serve(t, (_, response) => void held.push(response));
    const time = new FakeTime();
    const limits = { defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 600_000 } } };
    const roles = { landing: { fail_max: 1, reset_timeout_s: 600 } };
    const breakers = { defaults: { per: "partition", half_open: { jitter_ms: 100 }, roles } } as const;
    const hub = await hubFor(t, { time, random: () => 0.5, cache: false, retry: false, limits, breakers });
    const send = async () => (await hub.fetch(server.origin, { partition: "tenant" })).text();
    const throttle = (response: ServerResponse | undefined) => response?.writeHead(429, { "retry-after": "1" }).end();
    if (isOpen) {
      const failed = hub.fetch(server.origin, { partition: "tenant", role: "landing" });
      await until(() => held.length === 1);
      held.pop()?.writeHead(500).end();
      await (await failed).text();
    }
    const sentBefore = server.requests.length;
    const [first, slow] = [send(), send()];
    await until(() => held.length === 2);
    throttle(held[0]);
    await first;
    const trial = send();
    await until(() => hub.snapshot().waiting === 1);
    await time.advance(1020);
    assert.equal(hub.snapshot().waiting, 0, "it waits for its jitter");
    throttle(held[1]);
    await slow;
    await time.advance(60);
    assert.equal(hub.snapshot().waiting, 1);
    assert.equal(server.requests.length - sentBefore, 2);
    await time.advance(1200);
    await until(() => held.length === 3);
    held[2]?.end("ok");
    assert.equal(await trial, "ok");
  });

test("an agent that throws after the jitter of a trial call fails its request, and leaves nothing behind", async t => {
  const time = new FakeTime();
  const hub = await hubFor(t, { time, random: () => 0.5 });
  class FailingAgent extends http.Agent {
    override createConnection(): never {
      throw new Error("no connection");
    }
  }
  t.after(hub.install());
  hub.breakers.open("127.0.0.1", { seconds: 100 });
  hub.breakers.halfOpen("127.0.0.1");
  const request = http.get("http://127.0.0.1:9/", { agent: new FailingAgent() });
  const failed = once(request, "error");
  await time.advance(1000);
  const [error] = await failed;
  assert.equal(error.message, "no connection");
  assertNothingLeft(hub);
});

test("a refusal names the option that bounds the wait: maxWaitMs, or the time left of deadlineMs", async t => {
  const server = await serve(t, (_, response) => response.end());
  const limits = { defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 0 } } };
  const hub = await hubFor(t, { time: new FakeTime(), cache: false, retry: false, limits });
  await (await hub.fetch(server.origin)).text();
  const refusal = async (options: { readonly maxWaitMs?: number; readonly deadlineMs?: number }) => {
    const error = await hub.fetch(server.origin, options).catch(reason => reason);
    assert.ok(error instanceof RateLimitExceeded);
    return /\((max_delay_ms|maxWaitMs|the time left of deadlineMs)/.exec(error.message)?.[1];
  };
  assert.equal(await refusal({}), "max_delay_ms");
  assert.equal(await refusal({ maxWaitMs: 10 }), "maxWaitMs");
  assert.equal(await refusal({ deadlineMs: 10 }), "the time left of deadlineMs");
  assert.equal(await refusal({ maxWaitMs: 10, deadlineMs: 20 }), "maxWaitMs");
  assert.equal(await refusal({ maxWaitMs: 20, deadlineMs: 10 }), "the time left of deadlineMs");
});
