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
import { type HostAction, HubActions, parseAction, StoreActions } from "./actions.ts";
import type { DashboardState } from "./dashboard-state.ts";

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

/** Actions on a store that fails when records with this name are used, `after` the first change or from the beginning. */
function actionsOn(failing: RegExp, { after = false } = {}) {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  let isFailing = !after;
  const used = <Result>(name: string, use: () => Promise<Result>) =>
    isFailing && failing.test(name)
      ? Promise.reject(new StoreError("redis at redis://me:hunter2@127.0.0.1: gone"))
      : use();
  const store: Store = {
    processId: "p",
    processes: 1,
    exchange: (...about) => member.exchange(...about),
    read: name => used(name, () => member.read(name)),
    list: prefix => used(prefix, () => member.list(prefix)),
    change: (name, step) => {
      const changed = used(name, () => member.change(name, step));
      isFailing = true;
      return changed;
    },
    close: () => member.close(),
  };
  const operator = new Operator(store);
  return { actions: new StoreActions(operator, policy, time), operator };
}

function actionFor(order: Readonly<Record<string, unknown>>): HostAction {
  const hosts = [{ name: order["host"] }] as unknown as DashboardState["hosts"];
  const names = ["open", "close", "half-open", "hold", "release", "set-limit", "reset-limit"] as const;
  const body = { seconds: 60, reason: "test", ...order };
  return parseAction(body, names, { hosts, run: null }, "127.0.0.1") as HostAction;
}

test("an order from the row of a tier, a partition or a host of a service is for the host", () => {
  const rows = {
    "api.example.org with mailto": "api.example.org",
    "api.example.org#0123456789abcdef": "api.example.org",
    "api.example.org with mailto#0123456789abcdef": "api.example.org",
    "service x:api.example.org with mailto": "api.example.org",
    "service x with mailto": "service x",
  };
  for (const [host, unit] of Object.entries(rows))
    for (const action of ["open", "close", "half-open", "hold", "release"])
      assert.deepEqual(actionFor({ action, host, role: "landing" }).target, { unit, role: "landing" }, host);
});

test("an order to close or half-open a host of a service also ends what the service refuses", async () => {
  const time = new FakeTime();
  const operator = new Operator(new MemoryStore(time).member("p"));
  const actions = new StoreActions(operator, policy, time);
  const states = async () => (await operator.hosts()).map(({ name, state }) => `${name} ${state}`).toSorted();
  for (const host of ["export.arxiv.org", "service arxiv"]) await actions.run(actionFor({ action: "open", host }));
  assert.deepEqual(await states(), ["export.arxiv.org open", "service arxiv open"]);
  await actions.run(actionFor({ action: "close", host: "export.arxiv.org" }));
  assert.deepEqual(await states(), ["export.arxiv.org closed", "service arxiv closed"]);
  await actions.run(actionFor({ action: "open", host: "service arxiv" }));
  // No call passes the circuits of the host: half-open, they would stay so.
  await actions.run(actionFor({ action: "half-open", host: "export.arxiv.org" }));
  assert.deepEqual(await states(), ["export.arxiv.org closed", "service arxiv half_open"]);
});

test("an order for the circuits of a service with per_host is refused, because its hosts have them", async () => {
  const ratelimits = { services: { x: { per_host: true } } };
  const own = await loadPolicy({ env: {}, ratelimits: { extends: "none", ...ratelimits } });
  const time = new FakeTime();
  const operator = new Operator(new MemoryStore(time).member("p"));
  const actions = new StoreActions(operator, own, time);
  for (const action of ["open", "hold"])
    await assert.rejects(actions.run(actionFor({ action, host: "service x" })), {
      name: "RangeError",
      message: /^service x has per_host: .+; name the host$/,
    });
  assert.deepEqual(await operator.hosts(), []);
});

test("an order that the store has taken before it failed counts as given, and its effect as unknown", async () => {
  for (const failing of [/^orders$/, /^process /]) {
    const { actions, operator } = actionsOn(failing, { after: true });
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

test("in a hub, an order about limits has no effect if these are in shadow mode", async t => {
  const defaults = { metadata: { rates: "10/SECOND", mode: "shadow" as const } };
  const hub = await hubFor(t, { limits: { defaults } });
  const actions = new HubActions(hub);
  const limit = { action: "set-limit", host: "a.example", rates: "1/SECOND" };
  const isApplied = async (role: string) => (await actions.run(actionFor({ ...limit, role }))).isApplied;
  assert.deepEqual([await isApplied("metadata"), await isApplied("landing"), await isApplied("")], [false, true, true]);
  const reset = actionFor({ action: "reset-limit", host: "a.example", role: "metadata" });
  assert.equal((await actions.run(reset)).isApplied, true, "the limits of the policy apply again");
});

test("a looser limit is refused with the name of the choice in the page that sets it anyway", async t => {
  const hub = await hubFor(t, { limits: { defaults: { metadata: { rates: "10/SECOND" } } } });
  const order = actionFor({ action: "set-limit", host: "a.example", role: "metadata", rates: "20/SECOND" });
  await assert.rejects(new HubActions(hub).run(order), {
    name: "RangeError",
    message: /^20\/SECOND is looser than 10\/SECOND .*; choose “Replace the policy” to set it anyway$/,
  });
});
