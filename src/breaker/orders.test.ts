import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKERS, type FleetProcess, fleetOf, HOST, REREAD_MS } from "../../test/sharing/fleet.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { BreakerEvent } from "./breaker-events.ts";
import type { BreakerTarget } from "./orders.ts";

const PARTITIONED = { ...BREAKERS, defaults: { ...BREAKERS.defaults, per: "partition" } } as const;
const TENANT = { partition: "tenant" };
const CLOSE = { kind: "close" } as const;
const OPEN = { kind: "open", ms: 3_600_000, reason: "cli-open:test", isReplacing: false } as const;

/** Waits longer than the orders of these tests last. The result is undefined until the call is sent. */
function waitingCall(process: FleetProcess, call: Partial<EntryRequest>) {
  const sent: { waitedMs?: number } = {};
  const entering = Promise.resolve(process.gate.enter({ host: HOST, role: "metadata", maxWaitMs: 7_200_000, ...call }));
  void entering.then(({ waitedMs }) => Object.assign(sent, { waitedMs }));
  return sent;
}

for (const [name, target, call] of [
  ["role", { unit: HOST, role: "landing" }, { role: "landing" }],
  ["resolver", { resolver: "index" }, { resolver: "index" }],
] as const satisfies readonly (readonly [string, BreakerTarget, Partial<EntryRequest>])[]) {
  test(`an order to close one ${name} wakes the calls that wait for it in other processes, and all calls follow`, async () => {
    const { time, b, operator } = fleetOf(2);
    const events: BreakerEvent[] = [];
    b.breakers.listen(event => events.push(event));
    await operator.order(target, OPEN);
    const sent = waitingCall(b, call);
    await time.advance(1000);
    await operator.order(target, CLOSE);
    await time.advance(500);
    assert.equal(sent.waitedMs, 1500);
    for (let n = 0; n < 3; n += 1)
      assert.equal(b.breakers.tryAllow({ host: HOST, ...call }).isAllowed, true, "traffic is not limited");
    const ended = events.filter(({ event_type }) => event_type === "breaker_cooldown_ended");
    assert.equal(ended.length, 1);
  });
}

for (const [what, result, reason] of [
  ["Retry-After", { retryAfterMs: 600_000 }, "retry-after"],
  ["circuit", "failure", "failures"],
] as const) {
  test(`an order to close a host ends no newer ${what} of a partition, also where a process reads it an hour later`, async () => {
    const { time, a, b, operator } = fleetOf(2, PARTITIONED);
    await operator.order({ unit: HOST }, CLOSE);
    await time.advance(3_600_000);
    await a.sendAll(2, result, TENANT);
    await time.advance(REREAD_MS);
    assert.equal(await b.send("success", TENANT), reason, "the process that reads the order late");
    await time.advance(REREAD_MS);
    assert.equal(await a.send("success", TENANT), reason, "the process that was called");
  });
}

test("an order to close a host reaches the partitions that only other processes call", async () => {
  const { time, a, b } = fleetOf(2, PARTITIONED);
  await b.sendAll(2, "failure", TENANT);
  await b.send("success");
  assert.equal(await b.send("success", TENANT), "failures");
  await time.advance(REREAD_MS);
  a.breakers.close(HOST);
  await time.advance(REREAD_MS);
  await b.send("success");
  await time.advance(REREAD_MS);
  for (const process of [b, a]) assert.equal(await process.send("success", TENANT), undefined);
});

test("an order to half-open a host makes the circuits of its partitions half-open, and closes none", async () => {
  const granted = async (process: FleetProcess) => {
    const calls = [1, 2, 3].map(async () => process.gate.enter({ host: HOST, role: "metadata", ...TENANT }));
    return (await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled").length;
  };
  for (const isLocal of [true, false]) {
    const { time, a, b, operator } = fleetOf(2, PARTITIONED);
    await a.sendAll(2, "failure", TENANT);
    await b.send("success");
    await time.advance(REREAD_MS);
    const order = { kind: "half-open" } as const;
    if (isLocal) breakersOf(a.breakers).giveOrder({ unit: HOST }, order);
    else await operator.order({ unit: HOST }, order);
    await time.advance(REREAD_MS);
    assert.equal(await granted(a), 1);
    await time.advance(REREAD_MS);
    assert.equal(await granted(b), 0, "the trial call of the other process is in flight");
  }
});

for (const result of ["success", "failure"] as const) {
  test(`an order to half-open one role half-opens the partitions of other processes, also after a ${result} of the host`, async () => {
    const { time, a, b } = fleetOf(2, PARTITIONED);
    await b.sendAll(2, "failure", TENANT);
    await time.advance(REREAD_MS);
    const target = { unit: HOST, role: "metadata" } as const;
    breakersOf(a.breakers).giveOrder(target, { kind: "half-open" });
    await time.advance(REREAD_MS);
    // The trial call of the host itself, without a partition.
    assert.equal(await a.send(result), undefined);
    await time.advance(REREAD_MS);
    await b.send("neutral");
    await time.advance(REREAD_MS);
    const calls = [1, 2, 3].map(async () => b.gate.enter({ host: HOST, role: "metadata", ...TENANT }));
    const granted = (await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled");
    assert.equal(granted.length, 1, "trial calls");
  });
}

test("an order to close one role of a host closes the circuits of its partitions in that role, in every process", async () => {
  const target = { unit: HOST, role: "metadata" } as const;
  for (const isLocal of [true, false]) {
    const { time, a, b, operator } = fleetOf(2, PARTITIONED);
    await a.sendAll(2, "failure", TENANT);
    await b.sendAll(2, "failure", { partition: "other" });
    await a.sendAll(2, "failure", { ...TENANT, role: "landing" });
    await time.advance(REREAD_MS);
    if (isLocal) breakersOf(a.breakers).giveOrder(target, CLOSE);
    else await operator.order(target, CLOSE);
    await time.advance(REREAD_MS);
    for (const process of [a, b]) await process.send("success");
    await time.advance(REREAD_MS);
    for (const process of [a, b])
      for (const partition of ["tenant", "other"])
        assert.equal(await process.send("success", { partition }), undefined);
    assert.equal(await a.send("success", { ...TENANT, role: "landing" }), "failures", "the other role");
  }
});
