import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serve } from "../../test/http/kit.ts";
import { SteppedTime } from "../../test/http/stepped-time.ts";
import { storeWith } from "../../test/sharing/store-with.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { BreakerOpenError, StoreError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { loadPolicy } from "../policy/load.ts";
import { partitionName } from "../policy/partition-name.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { storeFor } from "../stores/open-store.ts";
import { announceOrder, EMPTY_ORDER_LOG, ORDER_LOG_NAME, type OrderLog } from "../stores/order-log.ts";
import { PROCESS_PREFIX, PROCESS_RECORD_US } from "../stores/process-record.ts";
import { hostRecordName } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { assembleHub, createHub } from "./create-hub.ts";
import { HubPolicy } from "./hub-policy.ts";
import { Operator, UnconfirmedOrderError } from "./operator.ts";

/** Longer than a hub trusts what it last read from the store (400 ms at most). */
const REREAD_MS = 1000;
const LIMITS = { rates: "1000/SECOND", max_delay_ms: 0 };

const TARGET = { unit: "127.0.0.1" };
const MAINTENANCE = { kind: "open", ms: 300_000, reason: "cli-open:maintenance", isReplacing: false } as const;

/** A running hub, and an operator that shares only the store file with it. */
async function startHubWithStore(t: TestContext, breakers: BreakersOptions = {}) {
  const folder = temporaryFolder("operator");
  const store = `sqlite:${join(folder, "shared.db")}` as const;
  const policy = {
    ratelimits: { extends: "none", defaults: { metadata: LIMITS } },
    breakers: { extends: "none", ...breakers },
  } as const;
  const time = new SteppedTime();
  const hub = await createHub({ env: {}, store, cache: false, retry: false, policy, time });
  const room = { policy: await loadPolicy({ env: {} }), env: {}, time: systemTime, random: Math.random };
  const shared = storeFor(store, room);
  assert.ok(shared !== undefined);
  t.after(async () => {
    await hub.close();
    await shared.close();
  });
  return { hub, time, operator: new Operator(shared) };
}

test("an operator opens the circuit of a host for a running hub, and closes it again", async t => {
  const { hub, time, operator } = await startHubWithStore(t);
  const { origin } = await serve(t, (_, response) => response.end("hello"));
  assert.equal((await hub.fetch(origin)).status, 200);
  const { status: opened } = await operator.order(TARGET, MAINTENANCE);
  assert.equal(opened.state, "open");
  assert.ok(opened.remainingMs > 299_000 && opened.remainingMs <= 300_000);
  time.step(REREAD_MS);
  const refused = await hub.fetch(origin).catch(reason => reason);
  assert.ok(refused instanceof BreakerOpenError);
  assert.equal(refused.reason, "cli-open:maintenance");
  const [listed] = await operator.hosts();
  assert.equal(listed?.name, "127.0.0.1");
  assert.equal(listed?.reason, "cli-open:maintenance");
  assert.equal((await operator.order(TARGET, { kind: "close" })).status.state, "closed");
  time.step(REREAD_MS);
  assert.equal((await hub.fetch(origin)).status, 200, "the next request is sent");
});

test("the commands of an operator for a host apply to all its partitions", async t => {
  const { hub, time, operator } = await startHubWithStore(t, { hosts: { "127.0.0.1": { per: "partition" } } });
  let status = 503;
  const { origin } = await serve(t, (_, response) => response.writeHead(status).end());
  const send = async (partition?: string) => {
    const response = await hub.fetch(origin, { partition }).catch(reason => reason);
    if (response instanceof BreakerOpenError) return response.reason;
    await response.arrayBuffer();
    return response.status;
  };
  for (let n = 0; n < 5; n += 1) await send("a");
  assert.equal(await send("a"), "failures");
  status = 200;
  assert.equal(await send("b"), 200);
  await operator.order(TARGET, { kind: "close" });
  time.step(REREAD_MS);
  assert.equal(await send("a"), 200, "the circuit of the partition is closed");

  await operator.order(TARGET, MAINTENANCE);
  time.step(REREAD_MS);
  for (const partition of ["a", "b", "new", undefined]) assert.equal(await send(partition), "cli-open:maintenance");
  await operator.order(TARGET, { kind: "close" });
  time.step(REREAD_MS);
  for (const partition of ["a", "b", "new", undefined]) assert.equal(await send(partition), 200);
});

test("an operator sees the circuit that failures of a hub opened, and can close it", async t => {
  const { hub, time, operator } = await startHubWithStore(t);
  let status = 503;
  const { origin } = await serve(t, (_, response) => response.writeHead(status).end());
  for (let n = 0; n < 5; n += 1) await (await hub.fetch(origin)).arrayBuffer();
  await assert.rejects(hub.fetch(origin), BreakerOpenError);
  // The hub writes its record beside the calls.
  let report = await operator.host("127.0.0.1");
  while (report.state !== "open") {
    await systemTime.sleep(5);
    report = await operator.host("127.0.0.1");
  }
  assert.equal(report.reason, "failures");
  assert.deepEqual(
    report.circuits.map(({ name, state }) => [name, state]),
    [["metadata", "open"]],
  );
  status = 200;
  await operator.order(TARGET, { kind: "close" });
  time.step(REREAD_MS);
  assert.equal((await hub.fetch(origin)).status, 200);
});

test("a hub publishes its status while calls are active, and removes it when it closes", async t => {
  const { hub, operator } = await startHubWithStore(t);
  const { promise: isEnough, resolve: enough } = Promise.withResolvers<void>();
  const { origin } = await serve(t, (_, response) => void isEnough.then(() => response.end("slow")));
  const slow = hub.fetch(origin);
  let [process] = await operator.processes();
  // The first status may be older than the request.
  while (process?.snapshot.inFlight !== 1) {
    await systemTime.sleep(50);
    [process] = await operator.processes();
  }
  assert.equal(process?.pid, globalThis.process.pid);
  assert.equal(process?.snapshot.calls, 1);
  assert.equal(process?.snapshot.keys[0]?.key, "127.0.0.1");
  assert.equal(process?.snapshot.keys[0]?.inFlight, 1);
  enough();
  await (await slow).text();
  await hub.close();
  assert.deepEqual(await operator.processes(), []);
});

test("a process that is listed publishes its status again after a reload, and when an order has ended", async t => {
  const memory = new MemoryStore(systemTime);
  const options = { env: {}, cache: false, retry: false } as const;
  const limits = (rates: string) => ({ extends: "none", defaults: { metadata: { rates } } }) as const;
  const policy = await HubPolicy.load({ ...options, policy: { ratelimits: limits("10/SECOND") } });
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time });
  const store = memory.member("hub");
  const hub = await assembleHub({ ...options, time }, { policy, breakers, store });
  t.after(() => hub.close());
  const operator = new Operator(memory.member("operator"));
  const published = async () => {
    const [process] = await operator.processes();
    return process?.snapshot.keys.map(({ windows, order }) => [windows[0]?.rate, order?.rates]);
  };
  const { origin } = await serve(t, (_, response) => response.end("ok"));
  await (await hub.fetch(origin)).text();
  await time.advance(5000);
  assert.deepEqual(await published(), [["10/SECOND", undefined]]);
  hub.limits.set("127.0.0.1:metadata", "50/SECOND", { seconds: 30, force: true });
  await time.advance(2000);
  assert.deepEqual(await published(), [["50/SECOND", "50/SECOND"]]);
  await time.advance(29_000);
  assert.deepEqual(await published(), [["10/SECOND", undefined]]);
  await hub.reload({ ratelimits: limits("7/SECOND") });
  await time.advance(1000);
  assert.deepEqual(await published(), [["7/SECOND", undefined]]);
});

/** An operator and a process that reads the log after 64 orders for another host have displaced the first question. */
async function operatorOfBusyStore(t: TestContext) {
  const deps = { policy: await loadPolicy({ env: {} }), env: {}, time: systemTime, random: Math.random };
  const store = storeFor(`sqlite:${join(temporaryFolder("operator"), "shared.db")}`, deps);
  assert.ok(store !== undefined);
  t.after(() => store.close());
  const logged = async () => (await store.read<OrderLog>(ORDER_LOG_NAME)).record ?? EMPTY_ORDER_LOG;
  let reads = 0;
  const status = { calls: 0, inFlight: 0, waiting: 0, keys: [], hosts: [] };
  class BusyOperator extends Operator {
    override async processes() {
      reads += 1;
      for (let n = 0; reads === 1 && n < 64; n += 1) await announceOrder(store as Store, hostRecordName("b.example"));
      const { sequence } = await logged();
      const orders = { sequence, shadowed: [] };
      const next = { pid: 1, machine: "m", program: "p", startedMs: 0, writtenMs: 0, snapshot: status, orders };
      await store?.change(`${PROCESS_PREFIX}1`, ({ nowUs }) => ({
        record: { next, keepUntilUs: nowUs + PROCESS_RECORD_US },
        result: undefined,
      }));
      return super.processes();
    }
  }
  return { operator: new BusyOperator(store), logged };
}

test("a process that has not seen a question, because many orders displaced it, is asked again", async t => {
  const { operator, logged } = await operatorOfBusyStore(t);
  const answers = await operator.ask(["a.example"], systemTime, 60_000);
  assert.deepEqual(
    answers.map(({ effect }) => effect),
    ["applied"],
  );
  assert.equal((await logged()).entries.at(-1)?.name, hostRecordName("a.example"));
});

test("a process that has not seen a question when the time is over has not answered", async t => {
  const { operator } = await operatorOfBusyStore(t);
  const answers = await operator.ask(["a.example"], systemTime, 0);
  assert.deepEqual(
    answers.map(({ effect }) => effect),
    ["silent"],
  );
});

/** A store with records of a host and two of its partitions, whose operator cannot reach what `parts` replaces. */
async function failingStore(parts: (store: Store) => Partial<Store>) {
  const store = new MemoryStore(new FakeTime()).member("operator");
  const operator = new Operator(store);
  await operator.order({ unit: "h.example" }, MAINTENANCE);
  const { record: next } = await store.read(hostRecordName("h.example"));
  const partitions = ["a", "b"].map(name => hostRecordName(partitionName("h.example", name)));
  for (const name of partitions)
    await store.change(name, ({ nowUs }) => ({ record: { next, keepUntilUs: nowUs + 1e9 }, result: undefined }));
  const logged = async () => (await store.read<OrderLog>(ORDER_LOG_NAME)).record?.entries.map(({ name }) => name) ?? [];
  return { operator: new Operator(storeWith(store, parts(store))), store, partitions, logged };
}

const AWAY = new StoreError("the store is away");

test("an order that cannot be written for the partitions of a host is announced, and the error says what is stored", async () => {
  const list: Store["list"] = () => Promise.reject(AWAY);
  const { operator, logged } = await failingStore(() => ({ list }));
  const before = (await logged()).length;
  await assert.rejects(operator.order({ unit: "h.example" }, { kind: "close" }), (error: unknown) => {
    assert.ok(error instanceof UnconfirmedOrderError);
    assert.equal(error.message, "only a part of the order is stored, give it again: the store is away");
    return true;
  });
  assert.deepEqual((await logged()).slice(before), [hostRecordName("h.example")]);
});

test("a partition that cannot be written does not keep an order from the others", async () => {
  const failed = hostRecordName(partitionName("h.example", "a"));
  const { operator, store, partitions, logged } = await failingStore(whole => ({
    change: (name, step) => (name === failed ? Promise.reject(AWAY) : whole.change(name, step)),
  }));
  await assert.rejects(operator.order({ unit: "h.example" }, { kind: "close" }), UnconfirmedOrderError);
  const states = new Map((await new Operator(store).hosts()).map(({ name, state }) => [hostRecordName(name), state]));
  assert.deepEqual(
    partitions.map(name => states.get(name)),
    ["open", "closed"],
  );
  assert.equal((await logged()).at(-1), hostRecordName("h.example"));
});

test("an order for several targets says that a part is stored if the store fails after the first", async () => {
  const failsFor = async (units: readonly string[]) => {
    const { operator } = await failingStore(whole => ({
      change: (name, step) =>
        units.some(unit => name === hostRecordName(unit)) ? Promise.reject(AWAY) : whole.change(name, step),
    }));
    const targets = ["one.example", "two.example"].map(unit => ({ unit }));
    return operator.orderAll(targets.map(target => ({ target, request: MAINTENANCE }))).catch(error => error);
  };
  assert.equal((await failsFor([])).length, 2);
  assert.equal(await failsFor(["one.example"]), AWAY, "nothing is stored");
  assert.ok((await failsFor(["two.example"])) instanceof UnconfirmedOrderError);
});

test("an order in a store that has lost its data counts as applied only by a process that has read it", async () => {
  const time = new FakeTime();
  const lost = new MemoryStore(time).member("operator");
  for (let n = 0; n < 3; n += 1) await new Operator(lost).order({ unit: "h.example" }, MAINTENANCE);
  const { sequence = 0 } = (await lost.read<OrderLog>(ORDER_LOG_NAME)).record ?? {};
  await time.advance(1000);
  const store = new MemoryStore(time).member("operator");
  const operator = new Operator(store);
  const effectAfter = async (read: number) => {
    const snapshot = { calls: 0, inFlight: 0, waiting: 0, keys: [], hosts: [] };
    const orders = { sequence: read, shadowed: [] };
    const next = { pid: 1, machine: "m", program: "p", startedMs: 0, writtenMs: 0, snapshot, orders };
    await store.change(`${PROCESS_PREFIX}1`, ({ nowUs }) => ({
      record: { next, keepUntilUs: nowUs + PROCESS_RECORD_US },
      result: undefined,
    }));
    return (await operator.acknowledgements([given.sequence], time, 0)).map(({ effect }) => effect);
  };
  const given = await operator.order({ unit: "h.example" }, MAINTENANCE);
  assert.deepEqual(await effectAfter(sequence), ["silent"]);
  assert.deepEqual(await effectAfter(given.sequence), ["applied"]);
});
