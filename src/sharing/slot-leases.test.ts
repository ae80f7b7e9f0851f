import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { loadPolicy } from "../policy/load.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { LEASE_MS, type Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Timer } from "../time/time.ts";

const HOST = "a.example";

function processesOf(
  count: number,
  slots: number,
  wrap: (store: Store) => Store = store => store,
  time = new FakeTime(),
) {
  const store = new MemoryStore(time);
  const limits = limitPoliciesFrom(
    {
      defaults: { metadata: { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 60_000 } },
      hosts: { [HOST]: { total: { max_concurrent: slots, shared: true } } },
    },
    "test",
  );
  const gates = Array.from(
    { length: count },
    (_, index) => new Gate(limits, time, { store: wrap(store.member(`p${index}`)), random: () => 0.5 }),
  );
  return { time, gates };
}

/** Sends requests of a given duration, and counts how many were in flight at once. */
class SlotLoad {
  readonly time: FakeTime;
  readonly perGate: number[] = [];
  running = 0;
  most = 0;

  constructor(time: FakeTime) {
    this.time = time;
  }

  async send(gate: Gate, index: number, ms: number, host = HOST): Promise<void> {
    const grant: Grant = await gate.enter({ host, role: "metadata", maxWaitMs: 600_000 });
    grant.written();
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.time.setTimer(ms, resolve);
    await promise;
    this.running -= 1;
    this.perGate[index] = (this.perGate[index] ?? 0) + 1;
    grant.release();
  }
}

test("a shared max_concurrent applies to all processes together, and is fully used", async () => {
  const { time, gates } = processesOf(3, 4);
  const load = new SlotLoad(time);
  const all = gates.flatMap((gate, index) => Array.from({ length: 20 }, () => load.send(gate, index, 200)));
  await time.advance(5000);
  assert.equal(load.most, 4);
  await time.advance(60_000);
  await Promise.all(all);
  assert.deepEqual(load.perGate, [20, 20, 20]);
});

test("no process keeps a slot while others wait for one", async () => {
  const { time, gates } = processesOf(2, 1);
  const load = new SlotLoad(time);
  const all = gates.flatMap((gate, index) => Array.from({ length: 30 }, () => load.send(gate, index, 100)));
  await time.advance(4000);
  const [a = 0, b = 0] = load.perGate;
  assert.equal(load.most, 1);
  assert.ok(a + b >= 20, `${a + b} were sent`);
  assert.ok(Math.abs(a - b) <= 1, `${a} and ${b}`);
  await time.advance(60_000);
  await Promise.all(all);
});

test("with the shipped policy several processes together keep the requests at a time that a provider allows", async () => {
  const { ratelimits } = await loadPolicy({ env: { DOCSTOKG_MAILTO: "test@example.org" } });
  for (const [host, most] of [
    ["api.crossref.org", 2],
    ["export.arxiv.org", 1],
    ["eutils.ncbi.nlm.nih.gov", 1],
  ] as const) {
    const time = new FakeTime();
    const store = new MemoryStore(time);
    const load = new SlotLoad(time);
    const gates = ["p0", "p1", "p2", "p3"].map(
      name => new Gate(ratelimits.resolved, time, { store: store.member(name), random: () => 0.5 }),
    );
    const all = gates.map((gate, index) => load.send(gate, index, 5000, host));
    await time.advance(60_000);
    await Promise.all(all);
    assert.equal(load.most, most, host);
  }
});

test("a request gets its slot although every timer fires a moment early", async () => {
  class EarlyTime extends FakeTime {
    override setTimer(ms: number, callback: () => void): Timer {
      return super.setTimer(ms > 1 ? ms - 1 : ms, callback);
    }
  }
  const time = new EarlyTime();
  const { gates } = processesOf(2, 1, store => store, time);
  const load = new SlotLoad(time);
  const all = gates.map((gate, index) => load.send(gate, index, 1000));
  await time.advance(3000);
  await Promise.all(all);
  assert.equal(load.most, 1);
});

test("several processes get a slot of a store that takes longer than a slot is kept", async () => {
  const time = new FakeTime();
  const pause = () => new Promise<void>(resolve => void time.setTimer(200, resolve));
  const slowly = async <Reply>(call: () => Promise<Reply>): Promise<Reply> => {
    await pause();
    const reply = await call();
    await pause();
    return reply;
  };
  const slowStore = (store: Store): Store =>
    storeWith(store, {
      exchange: (...exchange) => slowly(() => store.exchange(...exchange)),
      change: (name, step) => slowly(() => store.change(name, step)),
    });
  const { gates } = processesOf(3, 1, slowStore, time);
  const load = new SlotLoad(time);
  const all = gates.map((gate, index) => load.send(gate, index, 1000));
  await time.advance(20_000);
  await Promise.all(all);
  assert.equal(load.most, 1);
});

test("a request that waits for a slot when its process closes is not left waiting", async () => {
  const { time, gates } = processesOf(2, 1);
  const [holder, closing] = gates as [Gate, Gate];
  const entering = Promise.resolve(holder.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  await entering;
  let isSettled = false;
  Promise.resolve(closing.enter({ host: HOST, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY }))
    .catch(() => undefined)
    .finally(() => {
      isSettled = true;
    });
  await time.advance(50);
  assert.equal(isSettled, false);
  await closing.close();
  await time.advance(10_000);
  assert.equal(isSettled, true);
});

test("processes ask for a slot the less often, the more others wait before them", async () => {
  let changes = 0;
  const { time, gates } = processesOf(21, 1, store =>
    storeWith(store, {
      change: (name, step) => {
        changes += 1;
        return store.change(name, step);
      },
    }),
  );
  const load = new SlotLoad(time);
  const all = gates.map((gate, index) => load.send(gate, index, 5000));
  await time.advance(4000);
  // If each asked every 100 ms, there would be 800.
  assert.ok(changes < 250, String(changes));
  await time.advance(130_000);
  await Promise.all(all);
  assert.equal(load.most, 1);
});

test("the slots of a process that died are free when its lease ends", async () => {
  const { time, gates } = processesOf(2, 1);
  const [dead, alive] = gates as [Gate, Gate];
  // The process is dead: its lease is not renewed any more.
  const lost = new MemoryStore(time);
  const member = lost.member("dead");
  const limits = limitPoliciesFrom({ hosts: { [HOST]: { total: { max_concurrent: 1, shared: true } } } }, "test");
  const other = new Gate(limits, time, { store: lost.member("alive") });
  await member.change("slots total a.example", ({ nowUs }) => ({
    record: {
      next: { dead: { held: 1, limit: 1, leaseUntilUs: nowUs + LEASE_MS * 1000 } },
      keepUntilUs: nowUs + LEASE_MS * 1000,
    },
    result: undefined,
  }));
  let isGranted = false;
  const waiting = Promise.resolve(other.enter({ host: HOST, role: "metadata", maxWaitMs: 60_000 })).then(grant => {
    isGranted = true;
    grant.release();
  });
  await time.advance(LEASE_MS - 1);
  assert.equal(isGranted, false);
  await time.advance(200);
  await waiting;
  assert.equal(isGranted, true);
  await Promise.all([dead.close(), alive.close(), other.close()]);
});

test("the slots of a process that is reported dead are given to another one long before its lease ends", async () => {
  const { time, gates } = processesOf(2, 1);
  const [dead, alive] = gates as [Gate, Gate];
  const entering = Promise.resolve(dead.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  await entering;
  let isGranted = false;
  const waiting = Promise.resolve(alive.enter({ host: HOST, role: "metadata" })).then(grant => {
    isGranted = true;
    grant.release();
  });
  await time.advance(5000);
  assert.equal(isGranted, false);
  alive.processesEnded(["p0"]);
  await time.advance(100);
  assert.equal(isGranted, true);
  await waiting;
});

test("a long request keeps its slot, and closing returns all slots", async () => {
  const { time, gates } = processesOf(2, 1);
  const [a, b] = gates as [Gate, Gate];
  const entering = Promise.resolve(a.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  const grant = await entering;
  grant.written();
  await time.advance(2.5 * LEASE_MS);
  let isGranted = false;
  const waiting = Promise.resolve(b.enter({ host: HOST, role: "metadata", maxWaitMs: 60_000 })).then(grant => {
    isGranted = true;
    grant.release();
  });
  await time.advance(1000);
  assert.equal(isGranted, false);
  await a.close();
  await time.advance(200);
  await waiting;
});

test("closing a process frees its slots for the others at once", async () => {
  const { time, gates } = processesOf(2, 1);
  const [a, b] = gates as [Gate, Gate];
  const entering = Promise.resolve(a.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  await entering;
  await a.close();
  let isGranted = false;
  const next = Promise.resolve(b.enter({ host: HOST, role: "metadata" })).then(grant => {
    isGranted = true;
    grant.release();
  });
  await time.advance(0);
  assert.equal(isGranted, true);
  await next;
});

/** A process that has asked the store for the only slot, which another process holds, and whose request was aborted. */
async function refusedProcess(afterChange?: (processId: string) => Promise<void>) {
  const { time, gates } = processesOf(2, 1, store =>
    storeWith(store, {
      processes: 2,
      change: async (name, step) => {
        const result = await store.change(name, step);
        await afterChange?.(store.processId);
        return result;
      },
    }),
  );
  const [holder, refused] = gates as [Gate, Gate];
  const held = Promise.resolve(holder.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  (await held).written();
  const otherTimers = time.armedTimers;
  const controller = new AbortController();
  const waiting = Promise.resolve(refused.enter({ host: HOST, role: "metadata", signal: controller.signal }));
  await time.advance(0);
  controller.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  return { time, refused, timers: () => time.armedTimers - otherTimers };
}

test("closing a process that waits for a slot cancels its next request to the store", async () => {
  const { time, refused, timers } = await refusedProcess();
  assert.ok(timers() > 0);
  await Promise.all([refused.close(), time.advance(0)]);
  assert.equal(timers(), 0);
});

test("a reply of the store that arrives after closing sets no timer", async () => {
  const late = Promise.withResolvers<void>();
  const { time, refused, timers } = await refusedProcess(async processId => {
    if (processId === "p1") await late.promise;
  });
  const closing = refused.close();
  await time.advance(0);
  late.resolve();
  await time.advance(0);
  await closing;
  assert.equal(timers(), 0);
});

test("the slots of two roles and of their host are counted separately", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const rates = { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 60_000 };
  const capped = { ...rates, max_concurrent: 1, shared: true };
  const total = { max_concurrent: 2, shared: true };
  const limits = limitPoliciesFrom({ hosts: { [HOST]: { metadata: capped, landing: capped, total } } }, "test");
  const [a, b] = ["a", "b"].map(name => new Gate(limits, time, { store: store.member(name), random: () => 0.5 }));
  assert.ok(a !== undefined && b !== undefined);
  const gone: string[] = [];
  const go = (name: string, gate: Gate, role: "metadata" | "landing") =>
    Promise.resolve(gate.enter({ host: HOST, role })).then(() => gone.push(name));
  void go("a metadata", a, "metadata");
  await time.advance(0);
  void go("b metadata", b, "metadata");
  void go("b landing", b, "landing");
  await time.advance(1000);
  assert.deepEqual(gone, ["a metadata", "b landing"]);
});

test("while the store is away each process has its share of the slots, at least one", async () => {
  let isAway = false;
  const away = () => Promise.reject(new StoreError("no connection"));
  const { time, gates } = processesOf(2, 4, store =>
    storeWith(store, {
      processes: 2,
      exchange: (...about) => (isAway ? away() : store.exchange(...about)),
      read: name => (isAway ? away() : store.read(name)),
      change: (name, step) => (isAway ? away() : store.change(name, step)),
    }),
  );
  const load = new SlotLoad(time);
  await Promise.all([...gates.map((gate, index) => load.send(gate, index, 0)), time.advance(1)]);
  load.perGate.fill(0);
  isAway = true;
  const all = gates.flatMap((gate, index) => Array.from({ length: 6 }, () => load.send(gate, index, 1000)));
  await time.advance(2500);
  assert.equal(load.most, 4);
  isAway = false;
  await time.advance(60_000);
  await Promise.all(all);
  assert.deepEqual(load.perGate, [6, 6]);
});

test("slots that were taken while the store was away are reported when it is back, as part of the full limit", async () => {
  let isAway = false;
  const unlessAway = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    if (isAway) throw new StoreError("no connection");
    return call();
  };
  const { time, gates } = processesOf(2, 4, store =>
    storeWith(store, {
      processes: 2,
      exchange: (...about) => unlessAway(() => store.exchange(...about)),
      change: (name, step) => unlessAway(() => store.change(name, step)),
    }),
  );
  const [a, b] = gates as [Gate, Gate];
  const inFlight: Grant[] = [];
  /** Tries to send so many requests within a second. */
  const take = async (gate: Gate, count: number) => {
    for (let n = 0; n < count; n += 1)
      void (async () => gate.enter({ host: HOST, role: "metadata", maxWaitMs: 900 }))().then(
        grant => {
          grant.written();
          inFlight.push(grant);
        },
        () => undefined,
      );
    for (let step = 0; step < 20; step += 1) await time.advance(50);
  };
  for (const gate of gates) await take(gate, 1);
  for (const grant of inFlight.splice(0)) grant.release();
  isAway = true;
  for (let second = 0; second < 4; second += 1) await take(a, 1);
  for (const grant of inFlight.splice(0)) grant.release();
  await take(a, 4);
  assert.equal(inFlight.length, 2, "its share");
  isAway = false;
  for (let second = 0; second < 8; second += 1) await take(b, 4);
  assert.equal(inFlight.length, 4);
});

test("check and snapshots name a slot that another process has, for a second after the store has said so", async () => {
  const { time, gates } = processesOf(2, 1);
  const [holder, other] = gates;
  assert.ok(holder && other);
  const call = { host: HOST, role: "metadata" } as const;
  const entering = holder.enter(call);
  await time.advance(0);
  const grant = await entering;
  const constraint = { kind: "concurrency", owner: HOST, limit: "max_concurrent 1" };
  const shown = () => other.keySnapshots().find(({ key }) => key === HOST);
  assert.equal(other.check(call), undefined, "the store was not asked yet");
  assert.equal(other.tryEnter(call), undefined);
  await time.advance(0);
  assert.deepEqual(other.check(call), { retryAfterMs: undefined, constraint });
  assert.deepEqual(shown()?.constraint, constraint);
  await time.advance(1000);
  assert.equal(other.check(call), undefined, "the slot may be free again");
  assert.equal(other.tryEnter(call), undefined);
  await time.advance(0);
  grant.release();
  await time.advance(200);
  assert.ok(other.check(call), "the store was not asked again");
  assert.equal(other.tryEnter(call), undefined);
  await time.advance(0);
  assert.equal(other.check(call), undefined, "the slot is leased");
});
