import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor } from "../../test/http/kit.ts";
import { StoreError } from "../errors.ts";
import { Operator } from "../http/operator.ts";
import { loadPolicy } from "../policy/load.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { PROCESS_PREFIX, PROCESS_RECORD_US } from "../stores/process-record.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type HostAction, HubActions, StoreActions } from "./actions.ts";

const policy = await loadPolicy({ env: {} });
const OPEN: HostAction = {
  ...{
    name: "open",
    target: { unit: "a.example" },
    targetText: "a.example",
    seconds: 60,
    rates: [],
    maxConcurrent: undefined,
    isForced: false,
  },
  ...{ reason: "test", by: "test" },
};

/** Actions on a store that fails when records with this name are used. */
function actionsOn(failing: RegExp) {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  const used = <Result>(name: string, use: () => Promise<Result>) =>
    failing.test(name) ? Promise.reject(new StoreError("redis at redis://me:hunter2@127.0.0.1: gone")) : use();
  const store: Store = {
    processId: "p",
    processes: 1,
    exchange: (...about) => member.exchange(...about),
    read: name => used(name, () => member.read(name)),
    list: prefix => used(prefix, () => member.list(prefix)),
    change: (name, step) => used(name, () => member.change(name, step)),
    close: () => member.close(),
  };
  const operator = new Operator(store);
  return { actions: new StoreActions(operator, policy, time), operator };
}

test("an order that the store has taken before it failed counts as given, and its effect as unknown", async () => {
  for (const failing of [/^orders$/, /^process /]) {
    const { actions, operator } = actionsOn(failing);
    assert.deepEqual(await actions.run(OPEN), {
      isApplied: false,
      text: "the order is stored, but whether processes have applied it is unknown: redis at redis://…@127.0.0.1: gone",
    });
    assert.equal((await operator.host("a.example")).state, "open");
  }
});

test("an order that the store has not taken is an error", async () => {
  const { actions } = actionsOn(/^host /);
  await assert.rejects(actions.run(OPEN), { name: "StoreError", message: /gone/ });
});

test("the shadow mode of circuits has no effect on holds and on orders to close", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time).member("p");
  const operator = new Operator(store);
  const actions = new StoreActions(operator, policy, time);
  const snapshot = { calls: 0, inFlight: 0, waiting: 0, keys: [], hosts: [] };
  const orders = { sequence: 5, shadowed: [1, 2, 3, 4, 5] };
  const next = { pid: 1, machine: "m", program: "p", startedMs: 0, writtenMs: 0, snapshot, orders };
  await store.change(`${PROCESS_PREFIX}1`, ({ nowUs }) => ({
    record: { next, keepUntilUs: nowUs + PROCESS_RECORD_US },
    result: undefined,
  }));
  const applied = { isApplied: true, text: "applied by 1 of 1 process" };
  const shadow = { isApplied: false, text: "applied by 0 of 1 process; 1 in shadow mode, where it has no effect" };
  assert.deepEqual(await actions.run(OPEN), shadow);
  assert.deepEqual(await actions.run({ ...OPEN, name: "half-open" }), shadow);
  assert.deepEqual(await actions.run({ ...OPEN, name: "close" }), applied);
  assert.deepEqual(await actions.run({ ...OPEN, name: "hold" }), applied);
  assert.deepEqual(await actions.run({ ...OPEN, name: "release" }), applied);
});

test("an order to open or half-open a circuit has no effect in a hub in shadow mode", async t => {
  const hosts = { "b.example": { mode: "enforce" as const } };
  const hub = await hubFor(t, { breakers: { mode: "shadow", hosts } });
  const actions = new HubActions(hub);
  const shadow = { isApplied: false, text: "this process is in shadow mode, where it has no effect" };
  const applied = { isApplied: true, text: "applied by this process" };
  assert.deepEqual(await actions.run(OPEN), shadow);
  assert.deepEqual(await actions.run({ ...OPEN, name: "half-open" }), shadow);
  assert.deepEqual(await actions.run({ ...OPEN, target: { unit: "b.example" } }), applied);
  assert.deepEqual(await actions.run({ ...OPEN, name: "close" }), applied);
  assert.deepEqual(await actions.run({ ...OPEN, name: "hold" }), applied);
});
