import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConstraint } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";

const HOST = "api.example.org";

function setUp(limits: RatelimitsOptions) {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({ advanced: { ramp_up: { enabled: false } } }, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { breakers });
  const enter = async (request: Partial<EntryRequest> = {}) =>
    gate.enter({ host: HOST, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY, ...request });
  return { time, breakers, gate, enter };
}

const limitsOf = (metadata: object, more: RatelimitsOptions = {}): RatelimitsOptions => ({
  defaults: { metadata: { guard_ms: 0, max_delay_ms: 60_000, rates: "1000/SECOND", ...metadata } },
  ...more,
});

function waitText({ wait: { waitedMs, waitedFor } }: Grant): string {
  return `${waitedMs} ms: ${waitedFor === undefined ? "nothing" : describeConstraint(waitedFor)}`;
}

test("a request that did not wait waited for nothing", async () => {
  const { enter } = setUp(limitsOf({}));
  assert.equal(waitText(await enter()), "0 ms: nothing");
});

test("a wait for a rate names the window that was full, also behind other requests", async () => {
  const { time, enter } = setUp(limitsOf({ rates: ["2/SECOND", "3/MINUTE"] }));
  const grants = Array.from({ length: 5 }, async () => {
    const grant = await enter();
    grant.written();
    return waitText(grant);
  });
  await time.advance(120_000);
  assert.deepEqual(await Promise.all(grants), [
    "0 ms: nothing",
    "0 ms: nothing",
    `1000 ms: 2/SECOND of ${HOST}`,
    `60000 ms: 3/MINUTE of ${HOST}`,
    `60000 ms: 3/MINUTE of ${HOST}`,
  ]);
});

test("a wait for a slot names the role, the host or the process whose slots were taken", async () => {
  const slots = async (limits: RatelimitsOptions) => {
    const { time, enter } = setUp(limits);
    const first = await enter();
    const second = enter();
    await time.advance(300);
    first.release();
    return waitText(await second);
  };
  assert.equal(await slots(limitsOf({ max_concurrent: 1 })), `300 ms: max_concurrent 1 of ${HOST}`);
  const total = { hosts: { [HOST]: { total: { max_concurrent: 1 } } } };
  assert.equal(await slots(limitsOf({}, total)), `300 ms: max_concurrent 1 of ${HOST}`);
  assert.equal(await slots(limitsOf({}, { global: { max_inflight: 1 } })), "300 ms: max_inflight 1 of the process");
});

test("a wait for a total names the total, and a held key its cooldown", async () => {
  const total = { hosts: { [HOST]: { total: { rates: "1/SECOND", guard_ms: 0 } } } };
  const { time, gate, enter } = setUp(limitsOf({}, total));
  (await enter()).written();
  const second = enter({ role: "landing" });
  await time.advance(1000);
  assert.equal(waitText(await second), `1000 ms: 1/SECOND of ${HOST}`);
  (await second).written();
  gate.hold(HOST, "metadata", 5000);
  const held = enter();
  await time.advance(5000);
  assert.equal(waitText(await held), `5000 ms: cooldown of ${HOST}`);
});

test("of a wait for a circuit and for a rate, the longer part is named", async () => {
  const { time, breakers, enter } = setUp(limitsOf({ rates: "1/SECOND" }));
  breakers.open(HOST, 10);
  const [first, second] = [enter(), enter()];
  await time.advance(10_000);
  (await first).written();
  assert.equal(waitText(await first), `10000 ms: open circuit (cli-open:operator) of ${HOST}`);
  await time.advance(1000);
  (await second).written();
  assert.equal(waitText(await second), `11000 ms: open circuit (cli-open:operator) of ${HOST}`);
  // The circuit opens again at the end of a long wait for the rate.
  const [third, fourth] = [enter(), enter()];
  await time.advance(1000);
  (await third).written();
  await time.advance(900);
  breakers.open(HOST, 0.2);
  await time.advance(200);
  assert.equal(waitText(await fourth), `2100 ms: 1/SECOND of ${HOST}`);
});

test("with a shared store, a wait for units or slots of all processes names them, and is split as in one process", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const limits = limitPoliciesFrom(
    {
      defaults: {
        metadata: { guard_ms: 0, max_delay_ms: 60_000, rates: "1/SECOND" },
        landing: { guard_ms: 0, max_delay_ms: 60_000, rates: "1000/SECOND", max_concurrent: 1, shared: true },
      },
    },
    "test",
  );
  const [busy, other] = ["p0", "p1"].map(name => new Gate(limits, time, { store: store.member(name) })) as [Gate, Gate];
  const enter = async (gate: Gate, role: "metadata" | "landing") => gate.enter({ host: HOST, role });
  const waits = async (role: "metadata" | "landing", end: (grant: Grant) => void) => {
    const first = enter(busy, role);
    await time.advance(0);
    const second = enter(other, role);
    (await first).written();
    await time.advance(500);
    end(await first);
    await time.advance(600);
    const { waitedFor, waitedMs, slotWaitMs } = (await second).wait;
    return [waitedFor && describeConstraint(waitedFor), waitedMs - slotWaitMs, slotWaitMs > 0];
  };
  // Apart from the wait for slots: 1000 ms for the rate, nothing for the slot.
  const rate = `1/SECOND (shared by all processes) of ${HOST}`;
  assert.deepEqual(await waits("metadata", () => undefined), [rate, 1000, false]);
  assert.deepEqual(await waits("landing", grant => grant.release()), [`max_concurrent 1 of ${HOST}`, 0, true]);
});
