import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../errors.ts";
import { Operator } from "../http/operator.ts";
import { loadPolicy } from "../policy/load.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type HostAction, StoreActions } from "./actions.ts";

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
