import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKERS, fleetOf, HOST, REREAD_MS } from "../../test/sharing/fleet.ts";
import { storeWith } from "../../test/sharing/store-with.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { Operator } from "../http/operator.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const OPEN = { kind: "open", ms: 600_000, reason: "cli-open:test", isReplacing: true } as const;

test("orders that the store has lost are in it again before the next request to their host", async () => {
  const { time, a, operator, shared } = fleetOf(2);
  await a.send("success");
  await operator.order({ unit: HOST }, OPEN);
  await operator.order({ resolver: "landing_page" }, OPEN);
  await operator.order({ unit: "b.example" }, { kind: "hold", ms: 600_000, reason: "cli-open:test" });
  await time.advance(REREAD_MS);
  await a.send("success", { resolver: "landing_page" });
  await a.send("success", { host: "b.example" }).catch(() => undefined);
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send("success", { host: "c.example" });
  shared.records.clear();
  assert.deepEqual(await operator.hosts(), []);
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success", { host: "c.example" });
  await time.advance(REREAD_MS);
  assert.deepEqual(
    (await operator.hosts()).map(({ kind, name, reason }) => [kind, name, reason]),
    [
      ["host", HOST, "cli-open:test"],
      ["host", "b.example", undefined],
      ["resolver", "landing_page", "cli-open:test"],
    ],
  );
  assert.equal((await operator.hold(["b.example"], "metadata"))?.reason, "cli-open:test");
});

test("an order is in a store that has lost its data as soon as the loss is noticed", async () => {
  const time = new FakeTime();
  let memory = new MemoryStore(time);
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "2/SECOND" } } }, "test");
  const current = () => memory.member("p");
  const gate = new Gate(limits, time, {
    breakers: new BreakerRegistry(BREAKERS, { time, random: () => 0 }),
    store: storeWith(current(), {
      exchange: (...about) => current().exchange(...about),
      read: name => current().read(name),
      change: (name, step) => current().change(name, step),
    }),
  });
  const send = async (host: string) => {
    const entering = (async () => {
      const grant = await gate.enter({ host, role: "metadata" });
      grant.written();
      grant.report({ outcome: { kind: "success" }, status: 200 });
      grant.release();
    })().catch(String);
    await time.advance(300);
    return entering;
  };
  const operatorOf = () => new Operator(memory.member("operator"));
  await send("b.example");
  await send(HOST);
  await operatorOf().order({ unit: HOST }, OPEN);
  assert.match(String(await send(HOST)), /forced open/);
  memory = new MemoryStore(time);
  for (let calls = 0; calls < 10; calls += 1) void send("b.example");
  await time.advance(5000);
  assert.deepEqual(
    (await operatorOf().hosts()).map(({ name, reason }) => [name, reason]),
    [[HOST, "cli-open:test"]],
  );
});
