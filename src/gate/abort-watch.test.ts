import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { gateOf, host, role, roleLimits } from "../../test/limiter/kit.ts";
import type { Grant } from "../limiter/grant.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";

test("a long-lived signal keeps no listener after a wait has ended, and a later abort changes nothing", async () => {
  const events: LimiterEvent[] = [];
  const { gate, time, log, pass } = gateOf(roleLimits({ rates: "1/s" }), event => events.push(event));
  const abort = new AbortController();
  pass();
  pass({ signal: abort.signal });
  pass();
  await time.advance(1000);
  assert.equal(getEventListeners(abort.signal, "abort").length, 0);
  abort.abort();
  assert.equal(gate.waiting, 1);
  await time.advance(1000);
  assert.deepEqual(log, [0, 1000, 2000]);
  assert.ok(events.every(event => !("outcome" in event) || event.outcome === "granted"));
});

test("ten thousand waits with one signal are queued and aborted in linear time", async () => {
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates: "1/s" } } }, "test"), time);
  const abort = new AbortController();
  let listeners = 0;
  const add = abort.signal.addEventListener.bind(abort.signal);
  abort.signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1;
    add(...args);
  };
  gate.enter({ host, role, stamp: "granted" });
  const waits = Array.from({ length: 10_000 }, () =>
    (gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY, signal: abort.signal }) as Promise<Grant>).catch(
      () => "left",
    ),
  );
  assert.equal(listeners, 1);
  abort.abort();
  assert.deepEqual(new Set(await Promise.all(waits)), new Set(["left"]));
  assert.equal(gate.waiting, 0);
  assert.equal(time.armedTimers, 0);
});
