import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { storeWith } from "../../test/sharing/store-with.ts";
import { RateLimitExceeded, StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import type { Grant } from "../limiter/grant.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";

interface SharedGates {
  readonly time: FakeTime;
  readonly gates: readonly Gate[];
  readonly events: LimiterEvent[];
}

/** Several gates that share a store, as in separate processes. */
function processesOf(
  count: number,
  rates: string,
  limits: RatelimitsOptions = {},
  wrap = (store: Store) => store,
  fleetSize?: number,
): SharedGates {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const events: LimiterEvent[] = [];
  const policy = limitPoliciesFrom(
    { defaults: { metadata: { rates, guard_ms: 0, max_delay_ms: 60_000 } }, ...limits },
    "test",
  );
  const gates = Array.from(
    { length: count },
    (_, index) =>
      new Gate(policy, time, {
        store: wrap(store.member(`p${index}`)),
        random: () => 0.5,
        awayPolicy: () => ({ mode: "share", fleetSize }),
        listener: event => {
          events.push(event);
        },
      }),
  );
  return { time, gates, events };
}

/** The store with another `exchange`. */
function withExchange(store: Store, exchange: Store["exchange"]): Store {
  return storeWith(store, {
    processes: 2,
    exchange,
  });
}

/** Waits for a grant and writes the request at once. */
async function send(gate: Gate | undefined, time: FakeTime, options: object = {}): Promise<number> {
  assert.ok(gate !== undefined);
  const grant = await gate.enter({ host: HOST, role: "metadata", ...options });
  grant.written();
  grant.release();
  return time.monotonicUs() / 1000;
}

test("the units of a process that is reported dead are free after one window, also those that others wait for", async () => {
  const { time, gates } = processesOf(3, "2/SECOND");
  const [dead, alive, idle] = gates;
  assert.ok(dead && alive && idle);
  const entering = [dead, dead].map(gate => gate.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  await Promise.all(entering);
  const sent: number[] = [];
  for (let n = 0; n < 2; n += 1) send(alive, time).then(ms => sent.push(ms));
  await time.advance(5000);
  assert.deepEqual(sent, [], "the units may still be written");
  for (const gate of [alive, idle]) gate.processesEnded(["p0"]);
  await time.advance(999);
  assert.deepEqual(sent, []);
  await time.advance(1);
  assert.deepEqual(sent, [6000, 6000]);
  await time.advance(1000);
  assert.equal(await send(idle, time), 7000, "also for a process that has not asked before");
});

for (const rates of ["1/SECOND", "1/SECOND+2/1300MS+500/HOUR"])
  test(`if a process dies while it has the next turn, the others lose less than a tenth of a window by it: ${rates}`, async () => {
    let isDead = false;
    const { time, gates } = processesOf(4, rates, {}, store =>
      storeWith(store, {
        exchange: (...exchange) =>
          isDead && store.processId === "p0" ? new Promise(() => undefined) : store.exchange(...exchange),
      }),
    );
    const sent: { readonly process: number; readonly ms: number }[] = [];
    for (const [process, gate] of gates.entries())
      for (let n = 0; n < 10; n += 1) send(gate, time).then(ms => sent.push({ process, ms }));
    await time.advance(3100);
    assert.deepEqual(
      sent.map(({ process }) => process),
      [0, 1, 2, 3],
      "the next turn is that of the first process",
    );
    isDead = true;
    await time.advance(6000);
    assert.equal(
      sent.slice(4).some(({ process }) => process === 0),
      false,
    );
    assert.equal(sent.length, 10);
    for (const [index, { ms }] of sent.entries()) assert.ok(ms >= index * 1000 && ms < index * 1000 + 100, `${ms}`);
  });

for (const [limited, limits] of [
  ["a host", {}],
  ["a service", { services: { pair: { members: [HOST, "b.example"] } } }],
] satisfies [string, RatelimitsOptions][])
  test(`a caller that ${limited} refuses can try again when the turn of another process is over, in case it has died`, async () => {
    const { time, gates } = processesOf(3, "1/SECOND", limits);
    const [first, dead, alive] = gates;
    assert.ok(first && dead && alive);
    let key = HOST;
    const refused = async (gate: Gate) => {
      const enter = async () => gate.enter({ host: HOST, role: "metadata", maxWaitMs: 0 });
      const entered = enter().catch((error: RateLimitExceeded) => {
        key = error.host;
        return error.retryAfterMs;
      });
      await time.advance(0);
      return entered;
    };
    await Promise.all([send(first, time), time.advance(0)]);
    assert.equal(await refused(dead), 1000);
    assert.equal(alive.retryMs(key, "metadata"), undefined);
    assert.equal(await refused(alive), 2000);
    const retryMs = alive.retryMs(key, "metadata") ?? 0;
    assert.ok(retryMs > 1020 && retryMs < 1050, `${retryMs}`);
    await time.advance(1000);
    assert.equal(await refused(alive), 1000, "the unit is reserved for the process before it");
    await time.advance(retryMs - 1000);
    const grant = await refused(alive);
    assert.ok(typeof grant === "object", `${grant}`);
    grant.written();
    grant.release();
  });

for (const mode of ["wait", "share"] as const)
  test(`a process that uses its units slowly notices within a second that the store has lost them: ${mode}`, async () => {
    const time = new FakeTime();
    let memory = new MemoryStore(time);
    const metadata = { rates: "60/MINUTE", guard_ms: 0, max_delay_ms: 3_600_000, max_concurrent: 1 };
    const gates = ["p0", "p1"].map(name => {
      const reached = async <Value>(ask: (store: Store) => Promise<Value>) => {
        await time.sleep(2);
        return ask(memory.member(name));
      };
      const store = storeWith(memory.member(name), {
        processes: 2,
        exchange: (...exchange) => reached(each => each.exchange(...exchange)),
      });
      const awayPolicy = () => ({ mode, fleetSize: undefined });
      return new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time, { store, awayPolicy });
    });
    const [slow, other] = gates;
    assert.ok(slow && other);
    const sentMs: number[] = [];
    const call = async (gate: Gate, ms: number) => {
      const grant = await gate.enter({ host: HOST, role: "metadata" });
      grant.written();
      sentMs.push(time.monotonicUs() / 1000);
      await time.sleep(ms);
      grant.release();
    };
    const repeated = async () => {
      while (time.monotonicUs() < 180_000_000) await call(slow, 200);
    };
    // They lease 50 units, and use them one after the other.
    for (let n = 0; n < 50; n += 1) void repeated();
    await time.advance(500);
    void call(other, 0);
    await time.advance(1000);
    memory = new MemoryStore(time);
    await time.advance(200);
    for (let n = 0; n < 50; n += 1) void call(other, 0);
    await time.advance(180_000);
    const most = Math.max(...sentMs.map(ms => sentMs.filter(each => each > ms - 60_000 && each <= ms).length));
    assert.ok(most <= 60, `${most} in a minute`);
    assert.ok(sentMs.length >= 120, `${sentMs.length} in three minutes`);
  });

test("after a reply that cannot be applied, nothing is settled twice and exchanges go one after the other", async () => {
  let [inFlight, most, settled, broken] = [0, 0, 0, 0];
  const { time, gates } = processesOf(1, "10/SECOND", {}, store =>
    withExchange(store, async (settlements, requests, ...rest) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      const replies = await store.exchange(settlements, requests, ...rest);
      await time.sleep(1);
      inFlight -= 1;
      for (const { written } of settlements) settled += written;
      if (settlements.length === 0 || requests.length === 0 || broken === 3) return replies;
      broken += 1;
      return replies.map(reply => ({ ...reply, use: null as never }));
    }),
  );
  const sent = Array.from({ length: 40 }, () => send(gates[0], time));
  await time.advance(60_000);
  await Promise.all(sent);
  assert.equal(broken, 3);
  assert.equal(settled, 40);
  const hosts = [1, 2, 3].map(number => send(gates[0], time, { host: `host-${number}.example` }));
  await time.advance(0);
  hosts.push(send(gates[0], time));
  await time.advance(10);
  await Promise.all(hosts);
  assert.equal(most, 1);
});

test("a reply that was under way when a process was reported dead does not delay the next request", async () => {
  let isSlow = false;
  const slowExchange = (store: Store): Store =>
    withExchange(store, async (...exchange) => {
      const replies = await store.exchange(...exchange);
      if (isSlow) await new Promise<void>(resolve => void clock?.setTimer(500, resolve));
      return replies;
    });
  let clock: FakeTime | undefined;
  const { time, gates } = processesOf(2, "1/MINUTE", {}, slowExchange);
  clock = time;
  const [dead, alive] = gates;
  assert.ok(dead && alive);
  const entering = Promise.resolve(dead.enter({ host: HOST, role: "metadata" }));
  await time.advance(0);
  await entering;
  isSlow = true;
  const sent: number[] = [];
  send(alive, time, { maxWaitMs: 600_000 }).then(ms => sent.push(ms));
  await time.advance(100);
  alive.processesEnded(["p0"]);
  isSlow = false;
  await time.advance(60_400);
  assert.deepEqual(sent, [60_500]);
});

test("processes that share a store keep one limit together", async () => {
  const { time, gates } = processesOf(2, "3/SECOND");
  const sent: number[] = [];
  for (const gate of gates) for (let n = 0; n < 3; n += 1) send(gate, time).then(ms => sent.push(ms));
  await time.advance(0);
  assert.deepEqual(sent, [0, 0, 0]);
  await time.advance(999);
  assert.equal(sent.length, 3);
  await time.advance(100);
  assert.equal(sent.length, 6);
});

test("within a process requests are granted first in, first out", async () => {
  const { time, gates } = processesOf(2, "2/SECOND");
  const order: string[] = [];
  for (let n = 0; n < 6; n += 1) {
    send(gates[0], time).then(() => order.push(`a${n}`));
    send(gates[1], time).then(() => order.push(`b${n}`));
  }
  await time.advance(10_000);
  assert.equal(order.length, 12);
  for (const name of ["a", "b"]) {
    const own = order.filter(one => one.startsWith(name));
    assert.deepEqual(own, own.toSorted());
  }
});

test("no process starves: each gets its share", async () => {
  const { time, gates } = processesOf(4, "8/SECOND");
  const got = gates.map(() => 0);
  for (const [index, gate] of gates.entries()) {
    for (let n = 0; n < 100; n += 1) {
      send(gate, time).then(() => {
        got[index] = (got[index] ?? 0) + 1;
      });
    }
  }
  await time.advance(20_000);
  const mean = got.reduce((sum, n) => sum + n, 0) / 4;
  assert.ok(mean * 4 >= 8 * 20 * 0.97, `${got}`);
  assert.ok(Math.max(...got) - Math.min(...got) <= mean / 4, `${got}`);
});

test("a request with maxWaitMs 0 is granted free units, and refused at once when other processes have them", async () => {
  const { time, gates } = processesOf(2, "1/SECOND");
  const first = gates[0]?.enter({ host: HOST, role: "metadata", maxWaitMs: 0 });
  const second = gates[1]?.enter({ host: HOST, role: "metadata", maxWaitMs: 0 });
  const refused = assert.rejects(Promise.resolve(second), error => {
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.constraint.limit, "1/SECOND (shared by all processes)");
    return true;
  });
  await time.advance(10);
  (await first)?.release();
  await refused;
  await time.advance(1000);
  assert.equal(time.armedTimers, 1, "only the lease of the other is renewed");
});

test("a refusal that is already known requests the store nothing", async () => {
  let asked = 0;
  const { time, gates } = processesOf(2, "1/MINUTE", {}, store =>
    withExchange(store, (settlements, requests) => {
      asked += requests.length;
      return store.exchange(settlements, requests);
    }),
  );
  await send(gates[0], time);
  const patient = send(gates[1], time);
  await time.advance(1);
  assert.equal(asked, 2);
  for (let n = 0; n < 5; n += 1) {
    await assert.rejects(send(gates[1], time, { maxWaitMs: 1000 }), RateLimitExceeded);
  }
  assert.equal(asked, 2);
  await time.advance(60_000);
  assert.equal(await patient, 60_000);
});

test("units leased for an aborted request are returned", async () => {
  const { time, gates } = processesOf(2, "1/MINUTE");
  const controller = new AbortController();
  const left = gates[0]?.enter({ host: HOST, role: "metadata", signal: controller.signal });
  const gone = assert.rejects(Promise.resolve(left));
  controller.abort();
  await gone;
  await time.advance(1);
  assert.equal(await send(gates[1], time), 1);
});

test("units of an unwritten grant are available to another process at once", async () => {
  const { time, gates } = processesOf(2, "1/MINUTE");
  const grant = await gates[0]?.enter({ host: HOST, role: "metadata" });
  grant?.giveBack();
  await time.advance(1);
  assert.equal(await send(gates[1], time), 1);
});

test("over all processes a request is charged to its role and its total together, or to neither", async () => {
  const host = { total: { rates: "3/SECOND", guard_ms: 0 }, metadata: { rates: "2/SECOND", guard_ms: 0 } };
  const { time, gates } = processesOf(2, "9/SECOND", {
    hosts: { [HOST]: { ...host, landing: { rates: "2/SECOND", guard_ms: 0 } } },
  });
  const sent: string[] = [];
  const patient = { maxWaitMs: Number.POSITIVE_INFINITY };
  for (const [index, role] of (
    ["metadata", "metadata", "metadata", "landing", "landing", "landing"] as const
  ).entries()) {
    send(gates[index % 2], time, { role, ...patient }).then(() => sent.push(role));
  }
  await time.advance(0);
  assert.equal(sent.length, 3);
  assert.ok(sent.filter(role => role === "metadata").length <= 2);
  await time.advance(3000);
  assert.equal(sent.length, 6);
});

test("when the store is away each process uses its share, reports it once, and returns to the full limits by itself", async () => {
  let isAway = false;
  const { time, gates, events } = processesOf(2, "4/SECOND", {}, store =>
    withExchange(store, (settlements, requests) =>
      isAway ? Promise.reject(new StoreError("no connection")) : store.exchange(settlements, requests),
    ),
  );
  for (const gate of gates) await send(gate, time);
  isAway = true;
  await time.advance(1000);
  const sent: number[] = [];
  for (const gate of gates) for (let n = 0; n < 6; n += 1) send(gate, time).then(ms => sent.push(ms));
  await time.advance(1999);
  assert.equal(sent.length, 0, "the other process may have used all units, and may still write those of its lease");
  await time.advance(1);
  assert.equal(sent.length, 4, "two each");
  await time.advance(999);
  assert.equal(sent.length, 4);
  isAway = false;
  await time.advance(5000);
  assert.equal(sent.length, 12);
  const storeEvents = events.map(event => event.event_type).filter(type => type.startsWith("store_"));
  assert.deepEqual(storeEvents.toSorted(), ["store_away", "store_away", "store_back", "store_back"]);
});

test("a reload while the store is away gives a process its share of the new limits", async () => {
  let isAway = false;
  const { time, gates } = processesOf(2, "4/SECOND", {}, store =>
    withExchange(store, (...about) =>
      isAway ? Promise.reject(new StoreError("no connection")) : store.exchange(...about),
    ),
  );
  const [gate] = gates;
  await send(gate, time);
  isAway = true;
  await time.advance(1000);
  const sentAway = send(gate, time);
  await time.advance(2000);
  await sentAway;
  const defaults = { metadata: { rates: "8/SECOND", guard_ms: 0, max_delay_ms: 60_000 } };
  gate?.reload(limitPoliciesFrom({ defaults }, "test"));
  await time.advance(1000);
  const sent: number[] = [];
  for (let n = 0; n < 9; n += 1) send(gate, time).then(ms => sent.push(ms));
  await time.advance(999);
  assert.equal(sent.length, 4, "half of eight");
  await time.advance(5000);
  assert.equal(sent.length, 9);
});

/** Two processes whose policy changes from `before` to `after`, and a store that replies after 20 ms. */
function reloadingProcesses(before: RatelimitsOptions, after: RatelimitsOptions) {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const slow = (member: Store) =>
    withExchange(member, async (...about) => {
      const replies = await member.exchange(...about);
      await time.sleep(20);
      return replies;
    });
  const gates = ["p0", "p1"].map(
    name => new Gate(limitPoliciesFrom(before, "test"), time, { store: slow(store.member(name)), random: () => 0.5 }),
  );
  const reload = () => {
    for (const gate of gates) gate.reload(limitPoliciesFrom(after, "test"));
  };
  const pending = (key: string) => store.find(key)?.dump().log.pending ?? 0;
  return { time, gates, reload, pending };
}

const metadataOf = (rates: string) => ({ metadata: { rates, guard_ms: 0, max_delay_ms: 60_000 } });

test("units that are leased while a reload removes the total are returned to the total too", async () => {
  const withTotal = { hosts: { [HOST]: { ...metadataOf("10/SECOND"), total: { rates: "5/SECOND", guard_ms: 0 } } } };
  const { time, gates, reload, pending } = reloadingProcesses(withTotal, {
    hosts: { [HOST]: metadataOf("10/SECOND") },
  });
  const sent = [send(gates[0], time), send(gates[0], time)];
  await time.advance(10);
  assert.equal(pending(`total ${HOST}`), 1, "leased, and the reply is on its way");
  reload();
  await time.advance(1000);
  await Promise.all(sent);
  assert.equal(pending(`lane ${HOST} metadata`), 0);
  assert.equal(pending(`total ${HOST}`), 0);
});

test("units leased under looser limits are not used after a reload", async () => {
  const { time, gates, reload } = reloadingProcesses(
    { hosts: { [HOST]: metadataOf("6/SECOND") } },
    { hosts: { [HOST]: metadataOf("3/SECOND") } },
  );
  const sentMs: number[] = [];
  for (const gate of gates) for (let n = 0; n < 3; n += 1) send(gate, time).then(ms => sentMs.push(ms));
  await time.advance(30);
  assert.equal(sentMs.length, 2, "the other four are leased, and the reply is on its way");
  reload();
  await time.advance(900);
  assert.equal(sentMs.length, 3, `${sentMs}`);
  await time.advance(2000);
  assert.equal(sentMs.length, 6, `${sentMs}`);
});

for (const [what, limitsOf] of [
  ["a role", metadataOf],
  ["a total", (rates: string) => ({ ...metadataOf("100/SECOND"), total: { rates, guard_ms: 0 } })],
] as const)
  test(`a reply that was under way when a reload changed the limits of ${what} does not delay its requests`, async () => {
    const { time, gates, reload } = reloadingProcesses(
      { hosts: { [HOST]: limitsOf("1/MINUTE") } },
      { hosts: { [HOST]: limitsOf("50/SECOND") } },
    );
    const first = send(gates[0], time);
    await time.advance(100);
    await first;
    let sentMs: number | undefined;
    send(gates[1], time, { maxWaitMs: Number.POSITIVE_INFINITY }).then(ms => {
      sentMs = ms;
    });
    await time.advance(10);
    reload();
    // The store applies the former limits until the other process asks with its new ones.
    send(gates[0], time).catch(() => undefined);
    await time.advance(200);
    assert.equal(sentMs, 140, "asked again when the reply has arrived");
  });

test("a total that a reload adds counts what all processes have sent before", async () => {
  const roles = { ...metadataOf("4/MINUTE"), landing: { rates: "4/MINUTE", guard_ms: 0, max_delay_ms: 60_000 } };
  const withTotal = { hosts: { [HOST]: { ...roles, total: { rates: "6/MINUTE", guard_ms: 0 } } } };
  const { time, gates, reload } = reloadingProcesses({ hosts: { [HOST]: roles } }, withTotal);
  const sent = [send(gates[0], time), send(gates[0], time), send(gates[1], time), send(gates[1], time)];
  await time.advance(1000);
  await Promise.all(sent);
  reload();
  const laterMs: number[] = [];
  for (const gate of gates)
    for (let n = 0; n < 2; n += 1)
      send(gate, time, { role: "landing", maxWaitMs: 100_000 }).then(ms => laterMs.push(ms));
  await time.advance(50_000);
  assert.equal(laterMs.length, 2, `${laterMs}`);
  await time.advance(60_000);
  assert.equal(laterMs.length, 4, `${laterMs}`);
});

test("a stricter policy of another process applies, and is reported once", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const events: LimiterEvent[] = [];
  const gateOf = (rates: string, name: string) =>
    new Gate(
      limitPoliciesFrom({ defaults: { metadata: { rates, guard_ms: 0, max_delay_ms: 60_000 } } }, "test"),
      time,
      {
        store: store.member(name),
        listener: event => {
          events.push(event);
        },
      },
    );
  const loose = gateOf("10/SECOND", "loose");
  const strict = gateOf("1/SECOND", "strict");
  await send(strict, time);
  const waiting = [send(loose, time), send(loose, time)];
  await time.advance(5000);
  const [first = 0, second = 0] = await Promise.all(waiting);
  assert.ok(first >= 1000 && second >= first + 1000, `${first} ${second}`);
  assert.equal(events.filter(({ event_type }) => event_type === "limit_overruled").length, 1);
});

test("limits that another process has had hold a process back only until the claim of that process ends", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const gateOf = (rates: string, name: string) =>
    new Gate(limitPoliciesFrom({ defaults: { metadata: { rates, guard_ms: 0, max_delay_ms: 0 } } }, "test"), time, {
      store: store.member(name),
    });
  const request = { host: HOST, role: "metadata", stamp: "granted" } as const;
  const strict = gateOf("1/HOUR", "strict");
  await send(strict, time);
  await strict.close();
  const loose = gateOf("100/HOUR", "loose");
  const sentMs: number[] = [];
  const waiting = async () => {
    (await loose.enter({ ...request, maxWaitMs: Number.POSITIVE_INFINITY })).release();
    sentMs.push(time.wallMs());
  };
  void waiting();
  await assert.rejects(async () => loose.enter(request), RateLimitExceeded);
  const refusedMs = time.wallMs();
  await time.advance(31_000);
  assert.deepEqual(
    sentMs.map(ms => ms - refusedMs <= 30_000),
    [true],
  );
  (await loose.enter(request)).release();
});

test("over all processes law L1 holds, every request is granted, and no unit stays leased", async () => {
  const call = fc.record({
    gate: fc.nat(2),
    afterMs: fc.nat(400),
    connectMs: fc.constantFrom(0, 0, 0, 50, 700),
    fate: fc.constantFrom("sent", "sent", "sent", "sent", "returned", "aborted"),
    weight: fc.constantFrom(1, 1, 1, 2),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 40 }), async calls => {
      const { time, gates } = processesOf(3, "3/SECOND+7/3SECOND");
      const writtenMs: number[] = [];
      let open = 0;
      for (const { gate, afterMs, connectMs, fate, weight } of calls) {
        await time.advance(afterMs);
        const controller = new AbortController();
        const entered = gates[gate]?.enter({
          host: HOST,
          role: "metadata",
          weight,
          maxWaitMs: Number.POSITIVE_INFINITY,
          signal: controller.signal,
        });
        open += 1;
        const use = async (grant: Grant) => {
          if (connectMs > 0) await time.sleep(connectMs);
          if (fate === "returned") grant.giveBack();
          else {
            grant.written();
            for (let unit = 0; unit < weight; unit += 1) writtenMs.push(time.monotonicUs() / 1000);
            grant.release();
          }
        };
        Promise.resolve(entered)
          .then(grant => grant && use(grant))
          .catch(error => assert.equal(error, controller.signal.reason))
          .finally(() => {
            open -= 1;
          });
        if (fate === "aborted") controller.abort();
      }
      await time.advance(120_000);
      assert.equal(open, 0, "every request was granted");
      for (const [limit, windowMs] of [
        [3, 1000],
        [7, 3000],
      ] as const) {
        for (const from of writtenMs) {
          const inside = writtenMs.filter(ms => ms >= from && ms < from + windowMs).length;
          assert.ok(inside <= limit, `${inside} in ${windowMs} ms`);
        }
      }
      for (const gate of gates) assert.equal(gate.waiting + gate.inFlight, 0);
      assert.equal(time.armedTimers, 0);
    }),
    { numRuns: 60 },
  );
});

test("units that were leased before the machine was suspended are leased again after it", async () => {
  const returned: number[] = [];
  const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
  const { time, gates } = processesOf(1, "3/SECOND", {}, store =>
    withExchange(store, async (settlements, requests, reports) => {
      for (const settlement of settlements) returned.push(settlement.returned);
      const replies = await store.exchange(settlements, requests, reports);
      await resumed;
      return replies;
    }),
  );
  const sent = send(gates[0], time);
  await time.advance(0);
  time.stepWall(5000);
  resume();
  await sent;
  await time.advance(0);
  assert.deepEqual(returned, [1, 0], "the unit of the first reply is returned, and that of the second is written");
});

test("a store that forgot an idle budget while a process was stopped has not lost data", async () => {
  const stopped = Promise.withResolvers<void>();
  let isStopping = false;
  const { time, gates, events } = processesOf(2, "3/SECOND", {}, store =>
    withExchange(store, async (...exchange) => {
      // The process is stopped after it has said what it knows, and before the store is asked.
      if (isStopping && store.processId === "p0") await stopped.promise;
      return store.exchange(...exchange);
    }),
  );
  await send(gates[0], time);
  isStopping = true;
  const sent: number[] = [];
  send(gates[0], time, { maxWaitMs: 601_000 }).then(ms => sent.push(ms));
  await time.advance(600_000);
  // Another exchange removes what has expired.
  void send(gates[1], time, { host: "b.example" });
  await time.advance(0);
  isStopping = false;
  stopped.resolve();
  await time.advance(10);
  assert.deepEqual(sent, [600_000]);
  assert.deepEqual(
    events.filter(({ event_type }) => event_type === "store_away"),
    [],
  );
});

test("a request with maxWaitMs 0 does not wait for exchanges made for other requests", async () => {
  const ticking: { time?: FakeTime } = {};
  // A slow store that leases one unit per exchange.
  const { time, gates } = processesOf(1, "100/SECOND", {}, store =>
    withExchange(store, async (settlements, requests) => {
      await ticking.time?.sleep(100);
      return store.exchange(
        settlements,
        requests.map(request => ({ ...request, most: request.least })),
      );
    }),
  );
  ticking.time = time;
  const [gate] = gates;
  const patient = Array.from({ length: 8 }, () => send(gate, time, { maxWaitMs: Number.POSITIVE_INFINITY }));
  await time.advance(10);
  let refusedMs = Number.NaN;
  const refused = assert.rejects(send(gate, time, { maxWaitMs: 0 }), RateLimitExceeded).then(() => {
    refusedMs = time.monotonicUs() / 1000;
  });
  await time.advance(2000);
  await refused;
  await Promise.all(patient);
  // The exchange in flight on arrival, the first one that includes it, and the timer that notices the reply.
  assert.ok(refusedMs <= 210, `refused at ${refusedMs}`);
});

test("a lease request made while the store failed keeps no request waiting", async () => {
  let fail: (error: StoreError) => void = () => undefined;
  const { time, gates } = processesOf(
    1,
    "5/SECOND",
    {
      defaults: {
        metadata: { rates: "5/SECOND", guard_ms: 0 },
        landing: { rates: "5/SECOND", guard_ms: 0, count_head: false },
      },
      global: { max_inflight: 1 },
    },
    store =>
      withExchange(store, () => {
        const { promise, reject } = Promise.withResolvers<never>();
        fail = reject;
        return promise;
      }),
    1,
  );
  const [gate] = gates;
  assert.ok(gate !== undefined);
  const first = gate.enter({ host: HOST, role: "landing", maxWaitMs: 60_000 });
  assert.ok(first instanceof Promise);
  await time.advance(1);
  const second = assert.rejects(async () => gate.enter({ host: HOST, role: "metadata", maxWaitMs: 100 }), {
    name: "BusyError",
  });
  let isRefused = false;
  void second.then(() => {
    isRefused = true;
  });
  await time.advance(1);
  // No unit is free, so that only the bound can end the wait.
  const slot = gate.enter({ host: HOST, role: "landing", method: "HEAD" }) as Grant;
  await time.advance(1);
  fail(new StoreError("gone"));
  await time.advance(150);
  assert.equal(isRefused, true);
  slot.release();
  ((await first) as Grant).release();
});

test("units that are too old when the costs arrive are leased again at once, although the store had none left", async () => {
  const limits: RatelimitsOptions = {
    defaults: {
      metadata: { rates: "5/MINUTE", costs: { credits: "100/MINUTE" }, guard_ms: 0, max_delay_ms: 60_000 },
    },
  };
  const clock: { time?: FakeTime } = {};
  const { time, gates } = processesOf(1, "5/MINUTE", limits, store =>
    withExchange(store, async (settlements, requests) => {
      const isCosts = requests.some(({ claims }) => claims.some(({ key }) => key.endsWith(" credits")));
      if (isCosts) await clock.time?.sleep(2000);
      const replies = await store.exchange(settlements, requests);
      return replies.map(reply => (reply.kind === "granted" && !isCosts ? { ...reply, nextMs: 50_000 } : reply));
    }),
  );
  clock.time = time;
  const sent = send(gates[0], time);
  await time.advance(5000);
  assert.equal(await Promise.race([sent, Promise.resolve("waiting")]), 2000);
});
