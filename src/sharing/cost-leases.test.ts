import assert from "node:assert/strict";
import { test } from "node:test";
import { ReferencedTime } from "../../test/sharing/referenced-time.ts";
import { storeWith } from "../../test/sharing/store-with.ts";
import { RateLimitExceeded, StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";

/** Several gates that share a store, as in separate processes, with these limits of costs. */
function processesOf(
  count: number,
  costs: string,
  totalCosts?: string,
  wrap = (store: Store) => store,
  time = new FakeTime(),
) {
  const store = new MemoryStore(time);
  const metadata = { rates: "100/s", costs: { credits: costs }, guard_ms: 0, max_delay_ms: 60_000 };
  const total = totalCosts === undefined ? {} : { total: { costs: { credits: totalCosts }, guard_ms: 0 } };
  const policy = limitPoliciesFrom({ hosts: { [HOST]: { metadata, ...total } } }, "test");
  const gates = Array.from(
    { length: count },
    (_, index) => new Gate(policy, time, { store: wrap(store.member(`p${index}`)), random: () => 0.5 }),
  );
  const sent: { ms: number; credits: number }[] = [];
  const call = async (which: number, credits: number, maxWaitMs = Number.POSITIVE_INFINITY): Promise<Grant> => {
    const entered = gates[which]?.enter({ host: HOST, role: "metadata", costs: { credits }, maxWaitMs });
    const grant = (await entered) as Grant;
    grant.written();
    sent.push({ ms: time.monotonicUs() / 1000, credits });
    return grant;
  };
  return { time, gates, sent, call };
}

test("the costs of all processes together keep the limit", async () => {
  const { time, sent, call } = processesOf(3, "10/s");
  for (let one = 0; one < 18; one += 1) void call(one % 3, 1 + (one % 4)).then(grant => grant.release());
  await time.advance(20_000);
  assert.equal(sent.length, 18);
  for (const { ms } of sent) {
    const inside = sent.filter(other => other.ms > ms - 1000 && other.ms <= ms);
    assert.ok(inside.reduce((sum, { credits }) => sum + credits, 0) <= 10, JSON.stringify(inside));
  }
});

test("the total of a host counts the costs of all processes", async () => {
  const { time, sent, call } = processesOf(2, "100/s", "6/s");
  for (let one = 0; one < 6; one += 1) void call(one % 2, 3).then(grant => grant.release());
  await time.advance(10_000);
  const seconds = sent.map(({ ms }) => Math.floor(ms / 1000));
  assert.equal(sent.length, 6);
  for (const second of new Set(seconds))
    assert.ok(seconds.filter(other => other === second).length <= 2, String(seconds));
});

test("a call that the costs of another process delay beyond its bound is refused, with the time that is true", async () => {
  const { time, call } = processesOf(2, "10/MINUTE");
  const first = call(0, 10).then(grant => grant.release());
  await time.advance(100);
  await first;
  const refused = call(1, 1, 1000).catch(error => error);
  await time.advance(100);
  const error = await refused;
  assert.ok(error instanceof RateLimitExceeded, String(error));
  assert.equal(error.constraint.limit, "credits 10/MINUTE (shared by all processes)");
  assert.ok(error.retryAfterMs > 59_000 && error.retryAfterMs <= 60_000, String(error.retryAfterMs));
});

test("what a request did not use is free for the other processes when it is settled", async () => {
  const { time, sent, call } = processesOf(2, "10/MINUTE");
  const first = call(0, 10);
  await time.advance(100);
  (await first).settle({ credits: 3 });
  await time.advance(100);
  const other = call(1, 7, 100);
  await time.advance(100);
  (await other).release();
  assert.equal(sent.length, 2);
  await assert.rejects(Promise.all([call(1, 1, 0), time.advance(100)]), RateLimitExceeded);
});

test("a cost that is settled several times counts for the other processes with its largest amount, once", async () => {
  const { time, gates, sent, call } = processesOf(2, "20/MINUTE");
  const written = call(0, 4);
  const stamped = gates[0]?.enter({
    host: HOST,
    role: "metadata",
    costs: { credits: 4 },
    stamp: "granted",
    maxWaitMs: 100,
  });
  await time.advance(100);
  for (const grant of [await written, (await stamped) as Grant]) {
    for (const credits of [4, 0, 3, 1, 5, 2, 5]) {
      grant.settle({ credits });
      await time.advance(10);
    }
    grant.release();
  }
  await time.advance(2000);
  const other = call(1, 10, 100);
  await time.advance(100);
  (await other).release();
  assert.equal(sent.length, 2);
  await assert.rejects(Promise.all([call(1, 1, 0), time.advance(100)]), RateLimitExceeded);
});

test("a debt is taken from the store, so that the other processes wait for it", async () => {
  const { time, sent, call } = processesOf(2, "10/s");
  const first = call(0, 2);
  await time.advance(10);
  (await first).settle({ credits: 25 });
  (await first).release();
  await time.advance(10);
  const other = call(1, 5);
  await time.advance(900);
  assert.equal(sent.length, 1, "8 of the debt have used up the window");
  await time.advance(5000);
  (await other).release();
  assert.equal(sent.length, 2);
});

test("a debt far above the limits delays the other processes for the windows that it fills, and no longer", async () => {
  const { time, call } = processesOf(2, "10/s", "30/10s");
  const first = call(0, 2);
  await time.advance(10);
  (await first).settle({ credits: 1_700_000_000 });
  (await first).release();
  await time.advance(500);
  await Promise.all([assert.rejects(call(1, 10, 400), RateLimitExceeded), time.advance(500)]);
  await time.advance(25_000);
  const other = call(1, 10, 100);
  await time.advance(100);
  (await other).release();
});

test("a request that is given back, or a process that ends, leaves its costs to the others", async () => {
  const { time, gates, sent, call } = processesOf(2, "10/HOUR");
  const entered = gates[0]?.enter({ host: HOST, role: "metadata", costs: { credits: 10 }, maxWaitMs: 1000 });
  await time.advance(50);
  ((await entered) as Grant).giveBack();
  await time.advance(50);
  const closing = gates[0]?.close();
  await time.advance(50);
  await closing;
  const other = call(1, 10, 1000);
  await time.advance(50);
  (await other).release();
  assert.equal(sent.length, 1);
});

test("while the store is away each process has its share of the costs, and the store is not asked in a loop", async () => {
  let isDown = false;
  let exchanges = 0;
  const { time, sent, call } = processesOf(2, "10/MINUTE", undefined, store =>
    storeWith(store, {
      processes: 2,
      exchange: (...parts) => {
        exchanges += 1;
        return isDown ? Promise.reject(new StoreError("down")) : store.exchange(...parts);
      },
    }),
  );
  const before = call(0, 3);
  await time.advance(100);
  isDown = true;
  (await before).release();
  const during = call(0, 2);
  await time.advance(2000);
  (await during).release();
  const [tooMuch] = await Promise.all([call(0, 6, 0).catch(error => error), time.advance(100)]);
  assert.ok(tooMuch instanceof RateLimitExceeded, "more than the share of 5");
  assert.equal(tooMuch.constraint.kind, "store");
  assert.ok(exchanges < 30, String(exchanges));
  isDown = false;
  const after = call(0, 1);
  await time.advance(5000);
  (await after).release();
  assert.equal(sent.length, 3);
});

test("the costs that a process uses without the store count for the others when it is back", async () => {
  let isDown = false;
  const { time, sent, call } = processesOf(2, "10/MINUTE", undefined, store =>
    storeWith(store, {
      processes: 2,
      exchange: (...parts) =>
        isDown && store.processId === "p0" ? Promise.reject(new StoreError("down")) : store.exchange(...parts),
    }),
  );
  await call(1, 1).then(grant => grant.release());
  isDown = true;
  void call(0, 4).then(grant => grant.release());
  await time.advance(5000);
  isDown = false;
  await time.advance(5000);
  assert.equal(sent.length, 2);
  const [refused] = await Promise.all([call(1, 6, 1000).catch(error => error), time.advance(2000)]);
  assert.ok(refused instanceof RateLimitExceeded, String(refused));
  void call(1, 5, 1000).then(grant => grant.release());
  await time.advance(100);
  assert.equal(sent.length, 3);
});

test("a cost that is settled after the release takes nothing of the leases of other requests", async () => {
  const { time, gates, call } = processesOf(2, "20/HOUR");
  const first = call(0, 5);
  await time.advance(50);
  (await first).release();
  await time.advance(50);
  const second = gates[0]?.enter({ host: HOST, role: "metadata", costs: { credits: 5 }, maxWaitMs: 1000 });
  await time.advance(50);
  (await first).settle({ credits: 8 });
  ((await second) as Grant).giveBack();
  await time.advance(50);
  const rest = call(1, 12, 100);
  await time.advance(100);
  (await rest).release();
});

test("a debt that arises during an exchange is taken from the store right after it", async () => {
  const exchangeMs = 20;
  const { time, call } = processesOf(2, "10/HOUR", undefined, store =>
    storeWith(store, {
      exchange: async (...parts) => {
        const replies = await store.exchange(...parts);
        await new Promise<void>(resolve => time.setTimer(exchangeMs, resolve));
        return replies;
      },
    }),
  );
  const first = call(0, 2);
  await time.advance(100);
  (await first).release();
  // The settlement of the release is on its way.
  await time.advance(exchangeMs / 2);
  (await first).settle({ credits: 10 });
  await time.advance(200);
  const [refused] = await Promise.all([call(1, 5, 1000).catch(error => error), time.advance(500)]);
  assert.ok(refused instanceof RateLimitExceeded, String(refused));
});

test("a reply that was under way when a reload changed the limits of costs does not delay the next request", async () => {
  const exchangeMs = 20;
  const { time, gates, sent, call } = processesOf(2, "10/HOUR", undefined, store =>
    storeWith(store, {
      exchange: async (...parts) => {
        const replies = await store.exchange(...parts);
        await new Promise<void>(resolve => time.setTimer(exchangeMs, resolve));
        return replies;
      },
    }),
  );
  void call(1, 10).then(grant => grant.release());
  await time.advance(100);
  void call(0, 2).then(grant => grant.release());
  // The request has its unit, and asks for its costs.
  await time.advance(1.25 * exchangeMs);
  const metadata = { rates: "100/s", costs: { credits: "1000/s" }, guard_ms: 0, max_delay_ms: 60_000 };
  const policy = limitPoliciesFrom({ hosts: { [HOST]: { metadata } } }, "test");
  gates[1]?.reload(policy);
  // The store applies the former limits until the other process asks with its new ones.
  call(1, 1).catch(() => undefined);
  await time.advance(exchangeMs / 4);
  gates[0]?.reload(policy);
  await time.advance(100);
  assert.deepEqual(
    sent.map(({ credits }) => credits),
    [10, 2],
  );
});

test("after the last call, leases and debts do not keep a program alive", async () => {
  const time = new ReferencedTime();
  const { call } = processesOf(1, "10/DAY", undefined, store => store, time);
  const called = call(0, 5).then(grant => {
    grant.release();
    grant.settle({ credits: 25 });
  });
  await time.advance(100);
  await called;
  assert.ok(time.armedTimers > 0);
  assert.equal(time.referenced.size, 0);
});

test("a debt is paid when its own window has capacity, whatever other debts wait for", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const costs = { credits: "10/DAY", pages: "10/MINUTE" };
  const policy = limitPoliciesFrom({ hosts: { [HOST]: { metadata: { rates: "100/s", costs, guard_ms: 0 } } } }, "test");
  const [first, second] = ["p0", "p1"].map(name => new Gate(policy, time, { store: store.member(name) }));
  const entered = Promise.resolve(first?.enter({ host: HOST, role: "metadata", costs: { credits: 5, pages: 5 } }));
  await time.advance(100);
  const grant = (await entered) as Grant;
  grant.written();
  grant.release();
  grant.settle({ credits: 25, pages: 25 });
  await time.advance(61_000);
  const refused = Promise.resolve(
    second?.enter({ host: HOST, role: "metadata", costs: { credits: 0, pages: 6 }, maxWaitMs: 0 }),
  );
  await Promise.all([assert.rejects(refused, RateLimitExceeded), time.advance(100)]);
});

test("in shadow mode a request that used more than it was charged takes nothing from the other processes", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const gateOf = (mode: "enforce" | "shadow") =>
    new Gate(
      limitPoliciesFrom(
        { mode, hosts: { [HOST]: { metadata: { rates: "100/s", costs: { credits: "10/DAY" }, guard_ms: 0 } } } },
        "test",
      ),
      time,
      { store: store.member(mode) },
    );
  const request = { host: HOST, role: "metadata", maxWaitMs: 1000 } as const;
  const grant = (await gateOf("shadow").enter({ ...request, costs: { credits: 1 } })) as Grant;
  grant.release();
  grant.settle({ credits: 9 });
  await time.advance(100);
  const entered = gateOf("enforce").enter({ ...request, costs: { credits: 10 } });
  await time.advance(100);
  (await entered).release();
});
