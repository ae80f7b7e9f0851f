import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { Waiter } from "../limiter/waiter.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";
const ROLE = { rates: "100/SECOND", guard_ms: 0, max_delay_ms: 9_000_000 };

const ROLES = { metadata: ROLE, landing: ROLE, artifact: ROLE };
const ONE_A_SECOND = { rates: "1/SECOND", guard_ms: 0 };

type Call = Pick<EntryRequest, "role" | "partition" | "weight">;

const TWO_ROLES: readonly Call[] = [{ role: "metadata" }, { role: "landing" }];
const SIX_PARTITIONS: readonly Call[] = Array.from({ length: 6 }, (_, index) => ({
  role: "metadata",
  partition: `tenant-${index}`,
}));

function twoRoles(rates: string): RatelimitsOptions {
  return { hosts: { [HOST]: { metadata: ROLE, landing: ROLE, total: { rates, guard_ms: 0 } } } };
}

/** One process with a store that answers after `storeMs`. */
function processOf(limits: RatelimitsOptions, storeMs = 0): { readonly time: FakeTime; readonly gate: Gate } {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  const store = storeWith(member, {
    exchange: async (...exchange) => {
      if (storeMs > 0) await time.sleep(storeMs);
      return member.exchange(...exchange);
    },
  });
  return { time, gate: new Gate(limitPoliciesFrom(limits, "test"), time, { store, random: () => 0.5 }) };
}

async function send(gate: Gate, call: Call, options: object = {}): Promise<void> {
  const grant = await gate.enter({ host: HOST, maxWaitMs: Number.POSITIVE_INFINITY, ...call, ...options });
  grant.written();
  grant.release();
}

/** How many requests of each call are sent in a minute, if each always has some waiting. A response takes `heldMs`. */
async function sentInAMinute(
  limits: RatelimitsOptions,
  calls: readonly Call[],
  storeMs = 0,
  heldMs = 0,
): Promise<readonly number[]> {
  const { time, gate } = processOf(limits, storeMs);
  const sent = calls.map(() => 0);
  for (const [index, call] of calls.entries())
    for (let worker = 0; worker < 8; worker += 1)
      void (async () => {
        for (;;) {
          const grant = await gate.enter({ host: HOST, maxWaitMs: Number.POSITIVE_INFINITY, ...call });
          grant.written();
          if (heldMs > 0) await time.sleep(heldMs);
          grant.release();
          sent[index] = (sent[index] ?? 0) + 1;
        }
      })();
  await time.advance(60_000);
  return sent;
}

function spreadOf(counts: readonly number[]): number {
  return Math.max(...counts) - Math.min(...counts);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

for (const [rates, turn] of [
  ["1/3SECOND", 1],
  ["2/SECOND", 1],
  ["5/SECOND", 3],
] as const)
  for (const storeMs of [0, 3, 30])
    test(`two roles take turns at their total of ${rates} in a store that answers after ${storeMs} ms`, async () => {
      const sent = await sentInAMinute(twoRoles(rates), TWO_ROLES, storeMs);
      assert.ok(spreadOf(sent) <= turn, sent.join());
      const alone = await sentInAMinute(twoRoles(rates), [{ role: "metadata" }], storeMs);
      assert.equal(sum(sent), sum(alone), "no unit stays unused");
    });

test("three roles use their total up although the store answers only after 300 ms", async () => {
  const limits = { hosts: { [HOST]: { ...ROLES, total: { rates: "20/SECOND", guard_ms: 0 } } } };
  const sent = await sentInAMinute(limits, [{ role: "metadata" }, { role: "landing" }, { role: "artifact" }], 300);
  assert.ok(sum(sent) >= 1150, sent.join());
  assert.ok(spreadOf(sent) <= 20, sent.join());
});

test("six partitions take turns at their total in the store", async () => {
  const metadata = { ...ROLE, per: "partition" } as const;
  const limits = { hosts: { [HOST]: { metadata, total: { rates: "2/SECOND", guard_ms: 0 } } } };
  assert.deepEqual(await sentInAMinute(limits, SIX_PARTITIONS), [21, 21, 20, 20, 20, 20]);
});

test("roles take turns at the total of their service in the store", async () => {
  const limits = { services: { pair: { members: [HOST, "b.example"], ...ROLES, total: ONE_A_SECOND } } };
  const sent = await sentInAMinute(limits, [{ role: "metadata" }, { role: "landing" }, { role: "artifact" }]);
  assert.deepEqual(sent, [21, 20, 20]);
});

test("roles take turns at a total whose one slot all processes share", async () => {
  const total = { rates: "5/SECOND", guard_ms: 0, max_concurrent: 1, shared: true };
  const sent = await sentInAMinute({ hosts: { [HOST]: { ...ROLES, total } } }, TWO_ROLES, 0, 50);
  assert.ok(spreadOf(sent) <= 6, sent.join());
  assert.ok(sum(sent) >= 300, sent.join());
});

test("a call of a role that a busy role delays at their total is granted within its bound, with a store too", async () => {
  const { time, gate } = processOf(twoRoles("2/SECOND"));
  for (let index = 0; index < 200; index += 1) void send(gate, { role: "metadata" });
  await time.advance(10_000);
  for (let index = 0; index < 5; index += 1) {
    const startedUs = time.monotonicUs();
    let waitedMs: number | undefined;
    void send(gate, { role: "landing" }, { maxWaitMs: 10_000 }).then(() => {
      waitedMs = (time.monotonicUs() - startedUs) / 1000;
    });
    await time.advance(3000);
    assert.ok(waitedMs !== undefined && waitedMs <= 2000, `${waitedMs}`);
  }
});

test("a role that its own limit delays leaves its turns at the total to the others, so that no unit stays unused", async () => {
  const landing = { ...ROLE, rates: "1/10SECOND" };
  const limits = { hosts: { [HOST]: { metadata: ROLE, landing, total: { rates: "2/SECOND", guard_ms: 0 } } } };
  assert.deepEqual(await sentInAMinute(limits, TWO_ROLES), [115, 7]);
});

test("a role in a cooldown leaves its turns at the total to the others, so that no unit stays unused", async () => {
  const { time, gate } = processOf(twoRoles("2/SECOND"));
  const sent: string[] = [];
  for (let index = 0; index < 100; index += 1)
    for (const call of TWO_ROLES) void send(gate, call).then(() => sent.push(call.role));
  await time.advance(2000);
  gate.hold(HOST, "landing", 10_000);
  sent.length = 0;
  await time.advance(9999);
  assert.deepEqual(
    sent,
    Array.from({ length: 18 }, () => "metadata"),
  );
  await time.advance(2001);
  assert.equal(sent.slice(18).includes("landing"), true);
});

test("a role whose slot another process has leaves its turns at the total to the others, so that no unit stays unused", async () => {
  const landing = { ...ROLE, max_concurrent: 1, shared: true };
  const limits = { hosts: { [HOST]: { metadata: ROLE, landing, total: { rates: "2/SECOND", guard_ms: 0 } } } };
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const policies = limitPoliciesFrom(limits, "test");
  const [gate, other] = ["p", "q"].map(id => new Gate(policies, time, { store: store.member(id), random: () => 0.5 }));
  assert.ok(gate && other);
  const sent: string[] = [];
  for (let index = 0; index < 100; index += 1)
    for (const call of TWO_ROLES) void send(gate, call).then(() => sent.push(call.role));
  void (async () => (await other.enter({ host: HOST, role: "landing", maxWaitMs: 60_000 })).written())();
  await time.advance(5000);
  sent.length = 0;
  await time.advance(10_000);
  assert.deepEqual(
    sent,
    Array.from({ length: 20 }, () => "metadata"),
  );
});

for (const [rates, weight, storesMs] of [
  ["2/SECOND", 2, [0, 30]],
  ["10/SECOND", 5, [1, 30]],
] as const)
  for (const storeMs of storesMs)
    test(`a role whose requests have weight ${weight} takes turns at ${rates} with those of other processes, with a store that answers after ${storeMs} ms`, async () => {
      const time = new FakeTime();
      const store = new MemoryStore(time);
      const policies = limitPoliciesFrom(twoRoles(rates), "test");
      const light = [0, 0, 0];
      const heavy = [0, 0, 0];
      for (const process of light.keys()) {
        const member = store.member(`p${process}`);
        const slow = storeWith(member, {
          exchange: async (...exchange) => {
            if (storeMs > 0) await time.sleep(storeMs);
            return member.exchange(...exchange);
          },
        });
        const gate = new Gate(policies, time, { store: slow, random: () => 0.5 });
        const sendAll = async (call: Call, sent: number[]) => {
          for (;;) {
            await send(gate, call);
            sent[process] = (sent[process] ?? 0) + 1;
          }
        };
        for (let worker = 0; worker < 8; worker += 1) {
          void sendAll({ role: "metadata" }, light);
          void sendAll({ role: "landing", weight }, heavy);
        }
      }
      await time.advance(60_000);
      const units = heavy.map((count, process) => count * weight + (light[process] ?? 0));
      assert.ok(spreadOf(units) <= 4 * weight, `processes: ${units.join()}`);
      assert.ok(heavy.every(count => count > 0) && spreadOf(heavy) <= 3, `heavy: ${heavy.join()}`);
      const alone = sum(await sentInAMinute(twoRoles(rates), [{ role: "metadata" }]));
      assert.ok(sum(units) >= 0.9 * alone, `${sum(units)} of ${alone} units`);
    });

for (const [rates, weight] of [
  ["10/SECOND", 5],
  ["20/SECOND", 5],
] as const)
  for (const storeMs of [3, 30])
    test(`roles with requests of weight 1 and ${weight} get equal numbers of units of ${rates}, and use them up, with a store that answers after ${storeMs} ms`, async () => {
      const [light = 0, heavy = 0] = await sentInAMinute(
        twoRoles(rates),
        [{ role: "metadata" }, { role: "landing", weight }],
        storeMs,
      );
      const alone = sum(await sentInAMinute(twoRoles(rates), [{ role: "metadata" }], storeMs));
      assert.ok(light + weight * heavy >= 0.95 * alone, `${light} and ${heavy} of ${alone} units`);
      assert.ok(Math.abs(light - weight * heavy) <= 0.1 * alone, `${light} and ${heavy} of ${alone} units`);
    });

for (const [landing, artifact] of [
  [3, 0],
  [3, 3],
  [1, 4],
] as const)
  for (const afterMs of [0, 1500, 2700])
    test(`check knows the turns of the roles below a total in the store: ${landing} and ${artifact} wait, ${afterMs} ms later`, async () => {
      const limits = { hosts: { [HOST]: { ...ROLES, total: ONE_A_SECOND } } };
      const { time, gate } = processOf(limits);
      for (let index = 0; index < 6; index += 1) void send(gate, { role: "metadata" });
      for (let index = 0; index < landing; index += 1) void send(gate, { role: "landing" });
      for (let index = 0; index < artifact; index += 1) void send(gate, { role: "artifact" });
      await time.advance(afterMs);
      const beganUs = time.monotonicUs();
      const toldMs = gate.check({ host: HOST, role: "artifact" })?.retryAfterMs;
      let waitedMs: number | undefined;
      void send(gate, { role: "artifact" }).then(() => {
        waitedMs = (time.monotonicUs() - beganUs) / 1000;
      });
      await time.advance(20_000);
      assert.equal(toldMs, waitedMs);
    });

test("the work for a unit of a total does not grow with the partitions that wait for it", async () => {
  const metadata = { ...ROLE, per: "partition" } as const;
  const limits = { hosts: { [HOST]: { metadata, total: { rates: "2/SECOND", guard_ms: 0 } } } };
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  let requests = 0;
  const store = storeWith(member, {
    exchange: (settlements, asked, ...rest) => {
      requests += asked.length;
      return member.exchange(settlements, asked, ...rest);
    },
  });
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { store, random: () => 0.5 });
  let sent = 0;
  for (let index = 0; index < 500; index += 1)
    void send(gate, { role: "metadata", partition: `t${index}` }, { maxWaitMs: 3_600_000 }).then(() => {
      sent += 1;
    });
  await time.advance(500);
  // Each judgement of the waiting requests asks each of them for the end of its bound.
  const { latestUs } = Waiter.prototype;
  let judged = 0;
  Waiter.prototype.latestUs = function (this: Waiter, nowUs: number) {
    judged += 1;
    return latestUs.call(this, nowUs);
  };
  [requests, sent] = [0, 0];
  try {
    await time.advance(10_000);
  } finally {
    Waiter.prototype.latestUs = latestUs;
  }
  assert.equal(sent, 20);
  assert.ok(requests <= 2 * sent, `${requests} requests to the store`);
  assert.ok(judged <= 2 * sent, `${judged} judgements of a request`);
});

test("a request that has waited for a probe uses the unit that it has leased, also if its sibling waits for units", async () => {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  let replied = Promise.resolve();
  const store = storeWith(member, {
    read: async name => {
      await time.sleep(1);
      return member.read(name);
    },
    change: async (name, step) => {
      const changed = await member.change(name, step);
      await replied;
      return changed;
    },
  });
  const circuits = { fail_max: 1, reset_timeout_s: 5, half_open: { jitter_ms: 0 } };
  const breakers = new BreakerRegistry({ defaults: circuits }, { time });
  const limits = limitPoliciesFrom(twoRoles("1/SECOND"), "test");
  const gate = new Gate(limits, time, { store, breakers, random: () => 0.5 });
  const first = gate.enter({ host: HOST, role: "landing" });
  await time.advance(1);
  const failed = await first;
  failed.written();
  fail(failed);
  failed.release();
  await time.advance(5000);
  const { promise, resolve } = Promise.withResolvers<void>();
  replied = promise;
  const sent: string[] = [];
  for (const role of ["landing", "metadata"] as const) {
    void send(gate, { role }).then(() => sent.push(role));
    await time.advance(1);
  }
  assert.deepEqual(sent, [], "one waits for its probe, and the other one for a unit");
  resolve();
  await time.advance(2000);
  assert.deepEqual(sent, ["landing", "metadata"]);
  await gate.close();
});

for (const end of ["is aborted", "finds its circuit open"] as const)
  test(`a request that ${end} returns the unit that it has leased`, async () => {
    const time = new FakeTime();
    const shared = new MemoryStore(time);
    const member = shared.member("p");
    const store = storeWith(member, {
      read: async name => {
        await time.sleep(300);
        return member.read(name);
      },
    });
    const limits = limitPoliciesFrom(twoRoles("1/SECOND"), "test");
    const circuits = { defaults: { fail_max: 1, reset_timeout_s: 60 } };
    const [gate, peer] = [store, shared.member("q")].map(
      each =>
        new Gate(limits, time, { store: each, breakers: new BreakerRegistry(circuits, { time }), random: () => 0.5 }),
    ) as [Gate, Gate];
    const first = await peer.enter({ host: HOST, role: "landing" });
    first.written();
    if (end === "finds its circuit open") fail(first);
    first.release();
    await time.advance(2000);
    const abort = new AbortController();
    const ended = assert.rejects(send(gate, { role: "landing" }, { signal: abort.signal }));
    await time.advance(100);
    if (end === "is aborted") abort.abort();
    await time.advance(200);
    let sent = 0;
    void send(peer, { role: "metadata" }).then(() => (sent += 1));
    await time.advance(1000);
    assert.equal(sent, 1);
    abort.abort();
    await ended;
    await Promise.all([gate.close(), peer.close()]);
  });

test("a role that waits for costs leaves the units of the total to its sibling", async () => {
  const time = new FakeTime();
  const shared = new MemoryStore(time);
  const landing = { ...ROLE, costs: { credits: "10/60SECOND" }, call_costs: { credits: 10 } };
  const limits: RatelimitsOptions = { hosts: { [HOST]: { metadata: ROLE, landing, total: ONE_A_SECOND } } };
  const sent = { metadata: 0, landing: 0 };
  for (const name of ["p", "q"]) {
    const store = shared.member(name);
    const gate = new Gate(limitPoliciesFrom(limits, "test"), time, { store, random: () => 0.5 });
    for (const role of ["metadata", "landing"] as const)
      void (async () => {
        for (;;) {
          await send(gate, { role });
          sent[role] += 1;
        }
      })();
  }
  await time.advance(119_000);
  assert.equal(sent.landing, 2);
  assert.equal(sent.metadata, 116, "one unit of the total waits for each refusal of costs");
});

test("leased units that no request uses within a second are returned", async () => {
  const time = new FakeTime();
  const shared = new MemoryStore(time);
  const slow = storeWith(shared.member("p"), {
    read: async name => {
      await time.sleep(5000);
      return shared.member("p").read(name);
    },
  });
  const limits = limitPoliciesFrom(twoRoles("1/60SECOND"), "test");
  const [gate, peer] = [slow, shared.member("q")].map(
    store => new Gate(limits, time, { store, breakers: new BreakerRegistry({}, { time }), random: () => 0.5 }),
  ) as [Gate, Gate];
  void send(gate, { role: "landing" });
  await time.advance(1000);
  let sent = 0;
  void send(peer, { role: "metadata" }).then(() => (sent += 1));
  await time.advance(1);
  assert.equal(sent, 1);
});

function fail(grant: Grant): void {
  grant.report({ outcome: { kind: "failure", cause: "status", throttled: false }, status: 503 });
}
