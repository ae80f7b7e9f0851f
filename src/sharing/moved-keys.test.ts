import assert from "node:assert/strict";
import { test } from "node:test";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "www.example.org";
const HOUR = { rates: "4/HOUR", guard_ms: 0, max_delay_ms: 10_000 };

const limitsOf = (services: RatelimitsOptions["services"]) =>
  limitPoliciesFrom({ defaults: { metadata: HOUR }, ...(services && { services }) }, "test");

/** Two processes send two requests each, and get other limits one after the other. Returns how many they send then. */
async function sentAfterReload(before: RatelimitsOptions["services"], after: RatelimitsOptions["services"]) {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const gates = [0, 1].map(n => new Gate(limitsOf(before), time, { store: store.member(`p${n}`), random: () => 0.5 }));
  let sent = 0;
  const send = async (gate: Gate) => {
    const grant = await gate.enter({ host: HOST, path: "/a", role: "metadata" });
    grant.written();
    grant.release();
    sent += 1;
  };
  const sendAll = async (ms: number) => {
    for (const gate of gates) for (let n = 0; n < 4; n += 1) send(gate).catch(() => undefined);
    await time.advance(ms);
  };
  for (const gate of gates) for (let n = 0; n < 2; n += 1) void send(gate);
  await time.advance(100);
  assert.equal(sent, 4);
  for (const gate of gates) {
    gate.reload(limitsOf(after));
    await sendAll(500);
  }
  await sendAll(5000);
  return sent - 4;
}

for (const [what, before, after] of [
  ["that joins a new service", undefined, { part: { members: [HOST] } }],
  ["that joins a service", { part: { members: ["b.example"] } }, { part: { members: ["b.example", HOST] } }],
  ["that leaves a service", { part: { members: ["b.example", HOST] } }, { part: { members: ["b.example"] } }],
  ["that leaves a suffix", { part: { members: ["*.example.org"] } }, undefined],
  ["that has a path split off", undefined, { part: { members: [`${HOST}/a`] } }],
] satisfies [string, RatelimitsOptions["services"], RatelimitsOptions["services"]][])
  test(`a host ${what} counts what all processes have sent before the reload`, async () => {
    assert.equal(await sentAfterReload(before, after), 0);
  });
