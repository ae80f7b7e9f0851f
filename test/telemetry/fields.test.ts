/** Wait times in events, which the gate measures. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { BreakerEvent } from "../../src/breaker/breaker-events.ts";
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import { Gate } from "../../src/gate/gate.ts";
import type { Grant } from "../../src/limiter/grant.ts";
import { limitPoliciesFrom } from "../../src/policy/limits.ts";
import type { RatelimitsOptions } from "../../src/policy/ratelimit-schema.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, only, recordEvents, serve } from "../http/kit.ts";

const host = "api.example.org";

function gateFor(metadata: NonNullable<RatelimitsOptions["defaults"]>["metadata"]) {
  const time = new FakeTime();
  const policy = { guard_ms: 0, max_delay_ms: 60_000, ...metadata };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: policy } }, "test"), time);
  const enter = async () => gate.enter({ host, role: "metadata" });
  return { time, enter };
}

test("a wait for a rate is not counted as a wait for a slot", async () => {
  const { time, enter } = gateFor({ rates: "1/s" });
  const [first, second] = [enter(), enter()];
  (await first).release();
  await time.advance(1000);
  const { waitedMs, slotWaitMs } = (await second).wait;
  assert.deepEqual([waitedMs, slotWaitMs], [1000, 0]);
});

test("a wait for a slot is counted for every queued request, not only for the first", async () => {
  const { time, enter } = gateFor({ rates: "100/s", max_concurrent: 1 });
  const grants = [enter(), enter(), enter()];
  const waits: number[] = [];
  for (const grant of grants) {
    const { slotWaitMs, release } = await grant.then((granted: Grant) => ({
      slotWaitMs: granted.wait.slotWaitMs,
      release: () => granted.release(),
    }));
    waits.push(slotWaitMs);
    await time.advance(100);
    release();
  }
  assert.deepEqual(waits, [0, 100, 200]);
});

test("the wait for a slot is counted from the moment the rate would allow the request", async () => {
  const { time, enter } = gateFor({ rates: "1/s", max_concurrent: 1 });
  const [first, second] = [await enter(), enter()];
  first.written();
  await time.advance(1500);
  first.release();
  const { waitedMs, slotWaitMs } = (await second).wait;
  assert.deepEqual([waitedMs, slotWaitMs], [1500, 500]);
});

test("a wait for a cooldown is not counted as a wait for a slot", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time });
  const gate = new Gate(
    limitPoliciesFrom({ defaults: { metadata: { rates: "100/s", guard_ms: 0, max_delay_ms: 60_000 } } }, "test"),
    time,
    { breakers },
  );
  breakers.open(host, 2);
  const grant = gate.enter({ host, role: "metadata", maxWaitMs: 5000 });
  await time.advance(2000);
  const { waitedMs, slotWaitMs } = (await grant).wait;
  assert.deepEqual([waitedMs, slotWaitMs], [2000, 0]);
});

test("breaker_state_change has the rate_delay_ms of the last call", async () => {
  const time = new FakeTime();
  const events: BreakerEvent[] = [];
  const breakers = new BreakerRegistry(
    { defaults: { roles: { metadata: { fail_max: 2 } } } },
    { time, listener: event => events.push(event) },
  );
  const gate = new Gate(
    limitPoliciesFrom({ defaults: { metadata: { rates: "1/s", guard_ms: 0, max_delay_ms: 60_000 } } }, "test"),
    time,
    { breakers },
  );
  const call = { host, role: "metadata", resolver: "crossref" } as const;
  const first = await gate.enter(call);
  first.written();
  const second = gate.enter(call);
  await time.advance(1000);
  for (const grant of [first, await second]) {
    grant.report({ outcome: { kind: "failure", cause: "status", throttled: false }, status: 503 });
  }
  const changes = events.filter(event => event.event_type === "breaker_state_change");
  assert.deepEqual(
    changes.map(({ host: of, resolver, last_rate_delay_ms }) => [of, resolver, last_rate_delay_ms]),
    [[host, undefined, 1000]],
  );
});

test("http_request has the wait for a slot and the state of the resolver", async t => {
  const server = await serve(t, (_, response) => response.writeHead(503).end());
  const hub = await hubFor(t, {
    retry: false,
    breakers: { resolvers: { mirror: { fail_max: 1, reset_timeout_s: 60 } } },
  });
  const events = recordEvents(hub);
  await (await hub.fetch(server.origin, { resolver: "mirror" })).text();
  await (await hub.fetch(server.origin)).text();
  const requests = only(events, "http_request");
  assert.deepEqual(
    requests.map(({ breaker_resolver_state, rate_concurrency_wait_ms }) => [
      breaker_resolver_state,
      rate_concurrency_wait_ms,
    ]),
    [
      ["open", 0],
      [undefined, 0],
    ],
  );
});
