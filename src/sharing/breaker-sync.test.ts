import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import type { BreakerEvent } from "../breaker/breaker-events.ts";
import { BreakerOpenError, RateLimitExceeded, StoreError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Time } from "../time/time.ts";

const HOST = "a.example";
const CIRCUIT = { fail_max: 2, reset_timeout_s: 10 };
const LIMITS = { rates: "1000/SECOND", max_delay_ms: 0 };
const BREAKERS = breakersWith(CIRCUIT);

function breakersWith(circuit: typeof CIRCUIT): BreakersOptions {
  return {
    defaults: {
      ...circuit,
      roles: { metadata: circuit, landing: circuit, artifact: circuit },
      half_open: { jitter_ms: 0, trial_calls: { metadata: 1, artifact: 2 } },
    },
    advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
  };
}

interface PeerProcess {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly events: BreakerEvent[];
  /** Enters the gate of this process; `max_delay_ms` is 0. */
  enter(call?: Partial<EntryRequest>): Promise<Grant>;
}

/** Several processes that share a store, on virtual time. */
function processesOf(count: number, wrap: (store: Store) => Store = store => store, options = BREAKERS) {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const limits = limitPoliciesFrom({ defaults: { metadata: LIMITS, landing: LIMITS, artifact: LIMITS } }, "test");
  const processes = Array.from({ length: count }, (_, index): PeerProcess => {
    const events: BreakerEvent[] = [];
    const breakers = new BreakerRegistry(options, { time, random: () => 0, listener: event => events.push(event) });
    const gate = new Gate(limits, time, { breakers, store: wrap(store.member(`p${index}`)), random: () => 0.5 });
    const enter = async (call: Partial<EntryRequest> = {}) => gate.enter({ host: HOST, role: "metadata", ...call });
    return { gate, breakers, events, enter };
  });
  const [a, b, c] = processes;
  assert.ok(a !== undefined && b !== undefined);
  return { time, a, b, c: c ?? b, processes, store };
}

function end(grant: Grant, kind: "success" | "failure" | "neutral", retryAfterMs?: number): void {
  grant.written();
  if (kind === "success") grant.report({ outcome: { kind }, status: 200 });
  else if (kind === "failure")
    grant.report({
      outcome: { kind, cause: "status", throttled: retryAfterMs !== undefined },
      status: 503,
      retryAfterMs,
    });
  else grant.report({ outcome: { kind } });
  grant.release();
}

async function fails(process: PeerProcess, times: number, call: Partial<EntryRequest> = {}): Promise<void> {
  for (let n = 0; n < times; n += 1) end(await process.enter(call), "failure");
}

/** The error of a refused request; undefined if it was granted. */
async function refusal(process: PeerProcess, call: Partial<EntryRequest> = {}): Promise<BreakerOpenError | undefined> {
  try {
    (await process.enter(call)).giveBack();
    return undefined;
  } catch (error) {
    if (error instanceof BreakerOpenError) return error;
    throw error;
  }
}

const isNamed = (name: string) => (event: BreakerEvent) => event.event_type === name;

test("a Retry-After that one process received applies to all, for the same time", async () => {
  const { time, a, b } = processesOf(2);
  assert.equal(await refusal(b), undefined);
  end(await a.enter(), "failure", 4000);
  await time.advance(50);
  const denied = await refusal(b);
  assert.equal(denied?.reason, "retry-after");
  assert.equal(denied?.cooldownRemainingMs, 3950);
  await time.advance(3949);
  assert.equal((await refusal(b))?.cooldownRemainingMs, 1);
  await time.advance(1);
  assert.equal(await refusal(b), undefined);
  assert.equal(b.events.filter(isNamed("breaker_cooldown_set")).length, 1, "one event in the other process");
  assert.equal(a.events.filter(isNamed("breaker_cooldown_set")).length, 1, "no second event for its own record");
});

test("of two cooldowns the later deadline applies to all", async () => {
  const { time, a, b, c } = processesOf(3);
  const [first, second] = [await a.enter(), await b.enter()];
  end(first, "failure", 9000);
  end(second, "failure", 5000);
  await time.advance(100);
  for (const process of [a, b, c]) assert.equal((await refusal(process))?.cooldownRemainingMs, 8900);
});

test("a circuit that opens in one process is open in all, for that role only", async () => {
  const { time, a, b } = processesOf(2);
  await fails(a, 2);
  await time.advance(25);
  const denied = await refusal(b);
  assert.equal(denied?.reason, "failures");
  assert.equal(denied?.cooldownRemainingMs, 9975);
  assert.equal(await refusal(b, { role: "landing" }), undefined);
  assert.equal(await refusal(b, { host: "other.example" }), undefined);
});

test("after the reset one process probes, and the others wait for its outcome", async () => {
  const { time, a, b, c } = processesOf(3);
  await fails(a, 2);
  await time.advance(10_000);
  const grants = await Promise.allSettled([b.enter(), c.enter(), a.enter()]);
  const probes = grants.flatMap(result => (result.status === "fulfilled" ? [result.value] : []));
  assert.equal(probes.length, 1, "one probe among all processes");
  assert.equal((await refusal(a))?.constraint.limit, "probe in flight");
  end(probes[0] as Grant, "success");
  await time.advance(25);
  for (const process of [a, b, c]) assert.equal(await refusal(process), undefined);
});

test("a probe that fails opens the circuit again for all, for a full reset", async () => {
  const { time, a, b, c } = processesOf(3);
  await fails(a, 2);
  await time.advance(10_000);
  end(await b.enter(), "failure");
  await time.advance(50);
  for (const process of [a, b, c]) assert.equal((await refusal(process))?.cooldownRemainingMs, 9950);
});

test("a probe with a neutral outcome lets another process probe at once", async () => {
  const { time, a, b, c } = processesOf(3);
  await fails(a, 2);
  await time.advance(10_000);
  end(await b.enter(), "neutral");
  await time.advance(50);
  const probe = await c.enter();
  assert.equal((await refusal(a))?.constraint.limit, "probe in flight");
  end(probe, "success");
  await time.advance(25);
  assert.equal(await refusal(b), undefined);
});

test("a probe that is answered with a 404 closes the circuit for every process", async () => {
  const { time, a, b, c } = processesOf(3);
  await fails(a, 2);
  await time.advance(10_000);
  const probe = await b.enter();
  probe.written();
  probe.report({ outcome: { kind: "neutral" }, status: 404 });
  probe.release();
  await time.advance(50);
  for (const process of [a, b, c]) assert.equal(await refusal(process), undefined);
});

test("simultaneous requests lease a probe once", async () => {
  let changes = 0;
  const { time, a, b } = processesOf(2, store =>
    storeWith(store, {
      processes: 2,
      change: (name, step) => {
        changes += 1;
        return store.change(name, step);
      },
    }),
  );
  await fails(a, 2);
  await time.advance(10_000);
  changes = 0;
  const both = await Promise.allSettled([b.enter(), b.enter()]);
  assert.deepEqual(both.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
  assert.equal(changes, 1);
});

test("all processes together send as many probes as the policy allows", async () => {
  const { time, a, b, c } = processesOf(3);
  await fails(a, 2, { role: "artifact" });
  await time.advance(10_000);
  const tries = [a, b, c, a, b, c].map(process => process.enter({ role: "artifact" }));
  const granted = (await Promise.allSettled(tries)).filter(({ status }) => status === "fulfilled");
  assert.equal(granted.length, 2);
});

test("the probe of a process that died blocks the others only until its lease ends", async () => {
  const { time, a, b } = processesOf(2);
  await fails(a, 2);
  await time.advance(10_000);
  await b.enter();
  await time.advance(34_999);
  assert.notEqual(await refusal(a), undefined);
  await time.advance(1);
  end(await a.enter(), "success");
});

test("a waiting request is granted when another process has closed the circuit", async () => {
  const { time, a, b } = processesOf(2);
  await fails(a, 2);
  await time.advance(10_000);
  const probe = await b.enter();
  const waiting = a.enter({ maxWaitMs: 60_000 });
  await time.advance(3000);
  end(probe, "success");
  await time.advance(500);
  const grant = await waiting;
  assert.equal(grant.waitedMs <= 3500, true);
  end(grant, "success");
  await time.advance(120_000);
  assert.equal(time.armedTimers, 0, "no polling when no request waits");
});

test("a probe lease that is not used is returned", async () => {
  const { time, a, b } = processesOf(2);
  await fails(a, 2);
  await time.advance(10_000);
  const abort = new AbortController();
  const gone = assert.rejects(b.enter({ signal: abort.signal, maxWaitMs: 1000 }));
  abort.abort(new Error("enough"));
  await gone;
  await time.advance(1100);
  end(await a.enter(), "success");
});

test("a probe lease from before the circuit opened again is not used", async () => {
  let reply = Promise.resolve();
  const slow = (store: Store) =>
    storeWith(store, {
      processes: 3,
      change: async (name, step) => {
        const changed = await store.change(name, step);
        await reply;
        return changed;
      },
    });
  const { time, a, b, c } = processesOf(3, slow, breakersWith({ fail_max: 2, reset_timeout_s: 0.5 }));
  const late = [await c.enter(), await c.enter()];
  await fails(a, 2);
  await time.advance(500);
  const { promise, resolve } = Promise.withResolvers<void>();
  reply = promise;
  const abort = new AbortController();
  const gone = assert.rejects(b.enter({ signal: abort.signal, maxWaitMs: 1000 }));
  await time.advance(0);
  abort.abort(new Error("enough"));
  resolve();
  await gone;
  for (const grant of late) end(grant, "failure");
  await time.advance(600);
  const probe = await b.enter();
  assert.equal((await refusal(a))?.constraint.limit, "probe in flight");
  end(probe, "success");
});

test("an operator's order applies in every process until it expires or an operator ends it", async () => {
  const { time, a, b, c } = processesOf(3);
  const early = await b.enter();
  a.breakers.open(HOST, 300, "maintenance");
  await time.advance(30);
  end(early, "success");
  assert.equal((await refusal(b))?.reason, "cli-open:maintenance");
  assert.equal((await refusal(c))?.cooldownRemainingMs, 299_970);
  c.breakers.close(HOST);
  await time.advance(30);
  assert.equal(await refusal(a), undefined, "closed where it was ordered");
  assert.equal(await refusal(b), undefined);
  assert.equal(b.events.filter(isNamed("breaker_cooldown_ended")).length, 1);
});

test("an order of a peer that has ended does not end a Retry-After that is still running, in the events too", async () => {
  const { time, a, b } = processesOf(2);
  end(await a.enter(), "failure", 60_000);
  await time.advance(30);
  a.breakers.open(HOST, 300, "maintenance");
  await time.advance(30);
  const order = { kind: "open", ms: 1000, reason: "cli-open:shorter", isReplacing: true } as const;
  breakersOf(b.breakers).giveOrder({ unit: HOST }, order);
  await time.advance(2000);
  assert.equal((await refusal(a))?.reason, "retry-after");
  const events = a.events.filter(event => event.event_type.startsWith("breaker_cooldown_"));
  assert.equal(events.filter(isNamed("breaker_cooldown_ended")).length, 0);
  assert.equal((events.at(-1) as { readonly reason?: string }).reason, "retry-after");
});

test("a success ends the cooldown before it in every process, and no later one", async () => {
  const { time, a, b } = processesOf(2);
  end(await a.enter(), "failure", 60_000);
  await time.advance(30);
  assert.notEqual(await refusal(b), undefined);
  a.breakers.onSuccess({ host: HOST });
  await time.advance(30);
  assert.notEqual(await refusal(b), undefined, "one of unknown age ends nothing");
});

test("the circuit of a resolver is shared by all processes, whatever its hosts", async () => {
  const { time, a, b } = processesOf(2);
  for (let n = 0; n < 5; n += 1)
    await fails(a, 1, { host: `h${n}.example`, role: "landing", resolver: "landing_page" }).catch(() => undefined);
  await time.advance(30);
  const denied = await refusal(b, { host: "new.example", role: "landing", resolver: "landing_page" });
  assert.equal(denied?.constraint.owner, "resolver landing_page");
  assert.equal(await refusal(b, { host: "new.example", role: "landing" }), undefined);
});

test("HEAD requests and keys without windows are refused by a shared circuit too", async () => {
  const { time, a, b } = processesOf(2);
  end(await a.enter(), "failure", 4000);
  await time.advance(30);
  assert.notEqual(await refusal(b, { method: "HEAD" }), undefined);
});

test("while the store is away each process uses what it knows, and publishes it when the store is back", async () => {
  let isAway = false;
  const away = () => Promise.reject(new StoreError("no connection"));
  const { time, a, b } = processesOf(2, store =>
    storeWith(store, {
      processes: 2,
      exchange: (...about) => (isAway ? away() : store.exchange(...about)),
      read: name => (isAway ? away() : store.read(name)),
      change: (name, step) => (isAway ? away() : store.change(name, step)),
    }),
  );
  assert.equal(await refusal(a), undefined);
  assert.equal(await refusal(b), undefined);
  isAway = true;
  await time.advance(1000);
  // What the other process has sent is not known for a moment.
  for (const process of [a, b]) await assert.rejects(process.enter(), RateLimitExceeded);
  await time.advance(2100);
  end(await a.enter(), "failure", 60_000);
  await time.advance(100);
  assert.notEqual(await refusal(a), undefined, "it knows itself");
  assert.equal(await refusal(b), undefined, "the other process does not know of it");
  isAway = false;
  await time.advance(40_000);
  await refusal(a);
  await refusal(b);
  await time.advance(100);
  assert.equal((await refusal(b))?.cooldownRemainingMs, 60_000 - 40_200);
});

test("a store that has lost its data removes nothing from what a process knows", async () => {
  const time = new FakeTime();
  let store = new MemoryStore(time).member("p");
  const limits = limitPoliciesFrom({ defaults: { metadata: LIMITS, landing: LIMITS, artifact: LIMITS } }, "test");
  const breakers = new BreakerRegistry(BREAKERS, { time, random: () => 0 });
  const gate = new Gate(limits, time, {
    breakers,
    store: {
      processId: "p",
      processes: 1,
      exchange: (...about) => store.exchange(...about),
      read: name => store.read(name),
      change: (name, step) => store.change(name, step),
      list: prefix => store.list(prefix),
      close: () => store.close(),
    },
  });
  const grant = await gate.enter({ host: HOST, role: "metadata" });
  end(grant, "failure", 60_000);
  await time.advance(100);
  store = new MemoryStore(time).member("p");
  await time.advance(1000);
  await assert.rejects(async () => gate.enter({ host: HOST, role: "metadata" }), BreakerOpenError);
});

test("an order to close that the store has lost does not end the ramp-up after a newer order to open", async () => {
  const AT_ONCE = { maxWaitMs: 0 };
  let emptied: MemoryStore | undefined;
  const { time, a, b } = processesOf(2, member => {
    const current = () => emptied?.member(member.processId) ?? member;
    return storeWith(member, {
      processes: 2,
      read: name => current().read(name),
      change: (name, step) => current().change(name, step),
    });
  });
  // Only process b knows this order when the store loses it.
  b.breakers.close(HOST);
  await time.advance(100);
  emptied = new MemoryStore(time);
  a.breakers.open(HOST, 1);
  await time.advance(1100);
  const trial = await a.enter();
  assert.equal((await refusal(a, AT_ONCE))?.reason, "cli-open:operator", "the only trial call has no answer yet");
  // Process b reads the record, and adds the order that it lacks.
  await b.enter();
  await time.advance(100);
  assert.equal((await refusal(a, AT_ONCE))?.reason, "cli-open:operator");
  end(trial, "success");
  assert.equal(await refusal(a, AT_ONCE), undefined);
});

test("records are read once per interval, however many requests there are", async () => {
  let looks = 0;
  const { time, a } = processesOf(2, store =>
    storeWith(store, {
      processes: 2,
      read: name => {
        looks += 1;
        return store.read(name);
      },
    }),
  );
  for (let ms = 0; ms < 100; ms += 1) {
    await Promise.all(Array.from({ length: 3 }, () => refusal(a)));
    await time.advance(1);
  }
  assert.equal(looks, 4);
});

test("a store whose clock is set back does not keep a circuit open", async () => {
  let byUs = 7_200_000_000;
  const time = new FakeTime();
  const storeTime: Time = {
    monotonicUs: () => time.monotonicUs(),
    machineUs: () => time.machineUs() + byUs,
    wallMs: () => time.wallMs(),
    sleep: (ms, signal) => time.sleep(ms, signal),
    setTimer: (ms, action) => time.setTimer(ms, action),
  };
  const store = new MemoryStore(storeTime);
  const limits = limitPoliciesFrom({ defaults: { metadata: LIMITS, landing: LIMITS, artifact: LIMITS } }, "test");
  const [a, b, c] = ["a", "b", "c"].map((name): PeerProcess => {
    const breakers = new BreakerRegistry(BREAKERS, { time, random: () => 0 });
    const gate = new Gate(limits, time, { breakers, breakerStore: store.member(name) });
    const enter = async (call: Partial<EntryRequest> = {}) => gate.enter({ host: HOST, role: "metadata", ...call });
    return { breakers, gate, events: [], enter };
  }) as [PeerProcess, PeerProcess, PeerProcess];
  await fails(a, 2);
  await time.advance(25);
  assert.notEqual(await refusal(b), undefined, "it knows the record from before the step");
  byUs -= 3_600_000_000;
  await time.advance(100);
  assert.equal((await refusal(c))?.cooldownRemainingMs, 11_000, "reset_timeout_s and a margin");
  await time.advance(10_000);
  end(await b.enter(), "success");
  await time.advance(100);
  for (const process of [a, b, c]) assert.equal(await refusal(process), undefined);
});

test("a probe that is never reported blocks the others for the time limit of its call plus 5 s", async () => {
  for (const timeoutMs of [1000, 120_000]) {
    const { time, a, b } = processesOf(2);
    await fails(a, 2);
    await time.advance(10_000);
    await b.enter({ timeoutMs });
    await time.advance(timeoutMs + 4999);
    assert.notEqual(await refusal(a), undefined);
    await time.advance(1);
    end(await a.enter(), "success");
  }
});
