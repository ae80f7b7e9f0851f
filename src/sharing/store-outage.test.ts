import assert from "node:assert/strict";
import { test } from "node:test";
import { ReferencedTime } from "../../test/sharing/referenced-time.ts";
import { storeWith } from "../../test/sharing/store-with.ts";
import { RateLimitExceeded, StoreError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type AwayPolicy, awayText, StoreOutage } from "./store-outage.ts";

const HOST = "a.example";

interface RoleLimits {
  readonly rates: string;
  readonly costs?: Readonly<Record<string, string>>;
}

/** A gate whose store can be away. */
class OutageGate {
  readonly time = new ReferencedTime();
  readonly gate: Gate;
  readonly events: LimiterEvent[] = [];
  readonly warnings: string[] = [];
  readonly sentMs: number[] = [];
  exchanges = 0;
  error: StoreError | undefined;
  /** How long a call takes that fails. */
  failsAfterMs = 0;

  constructor(policy: AwayPolicy, isAway = false, metadata: RoleLimits = { rates: "8/SECOND" }) {
    const member = new MemoryStore(this.time).member("p");
    const reach = async <Value>(run: () => Promise<Value>): Promise<Value> => {
      const { error } = this;
      if (error === undefined) return run();
      if (this.failsAfterMs > 0) await this.time.sleep(this.failsAfterMs);
      throw error;
    };
    if (isAway) this.error = new StoreError("no connection");
    const store: Store = {
      processId: "p",
      processes: 4,
      exchange: (...about) => {
        this.exchanges += 1;
        return reach(() => member.exchange(...about));
      },
      read: name => reach(() => member.read(name)),
      change: (name, step) => reach(() => member.change(name, step)),
      list: prefix => reach(() => member.list(prefix)),
      close: () => member.close(),
    };
    const limits = { defaults: { metadata: { guard_ms: 0, max_delay_ms: 200, ...metadata } } };
    this.gate = new Gate(limitPoliciesFrom(limits, "test"), this.time, {
      store,
      random: () => 0,
      awayPolicy: () => policy,
      explain: ({ limit }) => ({ limit, value: limit, where: "the test", mode: "enforce" }),
      warn: message => this.warnings.push(message),
      listener: event => {
        this.events.push(event);
      },
    });
  }

  async send(options: Partial<EntryRequest> = {}): Promise<void> {
    const grant = await this.gate.enter({ host: HOST, role: "metadata", ...options });
    grant.written();
    grant.release();
    this.sentMs.push(this.time.monotonicUs() / 1000);
  }

  /** Starts calls that may wait as long as they need. */
  sendAll(count: number): Promise<unknown> {
    return Promise.all(Array.from({ length: count }, () => this.send({ maxWaitMs: 600_000 })));
  }

  get storeEvents(): readonly LimiterEvent[] {
    return this.events.filter(({ event_type }) => event_type.startsWith("store_"));
  }
}

test("before its first contact a process uses 1/fleet_size of each limit", async () => {
  const one = new OutageGate({ mode: "share", fleetSize: 4 }, true);
  const all = one.sendAll(4);
  await one.time.advance(1999);
  assert.deepEqual(one.sentMs, [], "what the other processes have sent before is not known");
  await one.time.advance(2000);
  await all;
  assert.deepEqual(one.sentMs, [2000, 2000, 3000, 3000]);
  await one.gate.close();
});

test("before its first contact a process without fleet_size waits, and says so", async () => {
  const one = new OutageGate({ mode: "share", fleetSize: undefined }, true);
  const all = one.sendAll(4);
  await one.time.advance(60_000);
  assert.deepEqual(one.sentMs, []);
  assert.deepEqual(one.warnings, [
    "the shared store does not answer: no connection; calls wait until it is back (the number of processes is not known: set fleet_size)",
  ]);
  one.error = undefined;
  await one.time.advance(500);
  await all;
  assert.equal(one.sentMs.length, 4);
  await one.gate.close();
});

test("a process that has not reached the store within a lease does not count on a share", async () => {
  const one = new OutageGate({ mode: "share", fleetSize: undefined });
  await one.send();
  await one.time.advance(30_000);
  one.error = new StoreError("no connection");
  const late = one.sendAll(1);
  await one.time.advance(5000);
  assert.equal(one.sentMs.length, 1);
  one.error = undefined;
  await one.time.advance(500);
  await late;
  await one.gate.close();
});

test("with wait, calls are queued until the store is back, or until their own bound", async () => {
  const one = new OutageGate({ mode: "wait", fleetSize: undefined });
  await one.send();
  one.error = new StoreError("no connection");
  const patient = one.sendAll(3);
  const hasty = assert.rejects(one.send({ maxWaitMs: 700 }), (error: unknown) => {
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.constraint.kind, "store");
    assert.match(error.message, /the shared store does not answer, so the rate limits of a\.example \(metadata\)/);
    return true;
  });
  await one.time.advance(10_000);
  await hasty;
  assert.equal(one.sentMs.length, 1);
  one.error = undefined;
  await one.time.advance(500);
  await patient;
  assert.equal(one.sentMs.length, 4);
  assert.deepEqual(
    one.storeEvents.map(({ event_type }) => event_type),
    ["store_away", "store_back"],
  );
  assert.equal(one.warnings.length, 2);
  assert.match(one.warnings[0] ?? "", /calls wait until it is back \(when_store_away: wait\)/);
  assert.match(one.warnings[1] ?? "", /the shared store is used again after 11 s/);
  await one.gate.close();
});

test("with refuse, new and waiting calls fail at once", async () => {
  const one = new OutageGate({ mode: "refuse", fleetSize: undefined });
  await one.send();
  one.error = new StoreError("no connection");
  const refusal = (error: unknown) => {
    assert.ok(error instanceof RateLimitExceeded);
    assert.match(error.message, /are not known, but this call waits at most 0 ms \(when_store_away: refuse\)/);
    assert.equal(error.decidedBy?.where, "the test");
    return true;
  };
  const waiting = assert.rejects(one.send({ maxWaitMs: 60_000 }), refusal);
  await one.time.advance(1);
  await waiting;
  await assert.rejects(one.send(), refusal);
  one.error = undefined;
  await one.time.advance(1000);
  await one.send().catch(() => undefined);
  await one.time.advance(1);
  await one.send();
  await one.gate.close();
});

test("a store that can never work fails the calls with its own error", async () => {
  const one = new OutageGate({ mode: "share", fleetSize: 2 }, true);
  one.error = new StoreError("WRONGPASS", { isPermanent: true });
  await assert.rejects(one.send({ maxWaitMs: 1000 }), { name: "StoreError", message: "WRONGPASS" });
  await assert.rejects(one.send(), { name: "StoreError" });
  await one.gate.close();
});

test("a store that is back does not keep a program alive until the full limits apply", async () => {
  const one = new OutageGate({ mode: "share", fleetSize: undefined });
  await one.send();
  await one.time.advance(100);
  one.error = new StoreError("no connection");
  const sent = one.sendAll(1);
  await one.time.advance(5000);
  await sent;
  one.error = undefined;
  await one.time.advance(600);
  assert.deepEqual(
    one.storeEvents.map(({ event_type }) => event_type),
    ["store_away", "store_back"],
  );
  assert.ok(one.time.armedTimers > 0);
  assert.equal(one.time.referenced.size, 0);
  await one.gate.close();
});

/** A process that has reached the store and has lost it, with as much of its share free as it ever has. */
async function withoutStore(metadata: RoleLimits): Promise<OutageGate> {
  const one = new OutageGate({ mode: "share", fleetSize: undefined }, false, metadata);
  await one.send();
  one.error = new StoreError("no connection");
  void one.send({ maxWaitMs: 1 }).catch(() => undefined);
  await one.time.advance(5000);
  one.sentMs.length = 0;
  return one;
}

const isRefusedForStore = (error: unknown) => {
  assert.ok(error instanceof RateLimitExceeded);
  assert.equal(error.constraint.kind, "store");
  assert.equal(error.decidedBy?.limit, "when_store_away");
  return true;
};

test("a call that needs more than the share of its process waits for the store, and smaller calls go on", async () => {
  const one = await withoutStore({ rates: "8/SECOND" });
  const heavy = one.send({ weight: 3 });
  await one.time.advance(1000);
  const light = one.sendAll(4);
  await one.time.advance(2000);
  await light;
  assert.equal(one.sentMs.length, 4, "its share is 2/SECOND");
  const hasty = assert.rejects(one.send({ weight: 3, maxWaitMs: 0 }), isRefusedForStore);
  await one.time.advance(1);
  await hasty;
  assert.equal(one.gate.check({ host: HOST, role: "metadata", weight: 3 })?.constraint.kind, "store");
  assert.equal(one.gate.waiting, 1);
  one.error = undefined;
  await one.time.advance(2500);
  await heavy;
  assert.equal(one.sentMs.length, 5);
  await one.gate.close();
});

test("calls that wait while a learned limit becomes smaller than the number of processes wait for the store", async () => {
  const one = await withoutStore({ rates: "8/SECOND" });
  const grant = await one.gate.enter({ host: HOST, role: "metadata" });
  grant.written();
  const waiting = one.sendAll(3);
  await one.time.advance(1);
  assert.equal(one.sentMs.length, 1, "its share is 2/SECOND");
  const announced = { source: "ratelimit", limit: 3, windowUs: 1_000_000 } as const;
  grant.recordResponse({ isThrottled: false, announced: [announced] });
  grant.release();
  await one.time.advance(5000);
  assert.equal(one.sentMs.length, 1, "3/SECOND cannot be divided by 4 processes");
  const aborted = new AbortController();
  const gone = assert.rejects(one.send({ maxWaitMs: 600_000, signal: aborted.signal }));
  aborted.abort();
  await gone;
  assert.equal(one.gate.waiting, 2);
  one.error = undefined;
  await one.time.advance(5000);
  await waiting;
  assert.equal(one.sentMs.length, 3);
  assert.equal(one.gate.waiting, 0);
  await one.gate.close();
});

test("a call that costs more than the share of its process waits for the store", async () => {
  const one = await withoutStore({ rates: "8/SECOND", costs: { credits: "20/MINUTE" } });
  const dear = one.send({ costs: { credits: 6 } });
  const bounded = assert.rejects(one.send({ costs: { credits: 6 }, maxWaitMs: 500 }), isRefusedForStore);
  await one.time.advance(60_000);
  await bounded;
  assert.deepEqual(one.sentMs, []);
  await one.send({ costs: { credits: 5 } });
  one.error = undefined;
  await one.time.advance(2500);
  await dear;
  assert.equal(one.sentMs.length, 2);
  await one.gate.close();
});

test("a weight that is larger than the whole limit is an error, also without the store", async () => {
  const one = await withoutStore({ rates: "8/SECOND" });
  await assert.rejects(one.send({ weight: 9 }), { name: "RangeError", message: /rate limit 8\/SECOND of a\.example/ });
  await one.gate.close();
});

test("if a limit is smaller than the number of processes, its calls wait for the store and keep the program alive", async () => {
  const one = await withoutStore({ rates: "3/10SECOND" });
  const sent = one.send();
  await one.time.advance(600_000);
  assert.deepEqual(one.sentMs, []);
  assert.match(one.warnings[0] ?? "", /1\/4 of each rate limit .* calls that need more than that wait/);
  assert.ok(one.time.referenced.size > 0);
  one.error = undefined;
  await one.time.advance(600);
  assert.equal(one.storeEvents.at(-1)?.event_type, "store_back");
  assert.ok(one.time.referenced.size > 0, "other processes may still be without the store");
  await one.time.advance(1600);
  await sent;
  await one.gate.close();
});

test("the warning about a store that can never work names its error, and no setting that was not made", async () => {
  const one = new OutageGate({ mode: "share", fleetSize: 2 }, true);
  one.error = new StoreError("WRONGPASS", { isPermanent: true });
  await assert.rejects(one.send({ maxWaitMs: 1000 }), { name: "StoreError" });
  assert.deepEqual(one.warnings, [
    "the shared store cannot be used: WRONGPASS; calls are refused until the store or its configuration is corrected",
  ]);
  await one.gate.close();
});

test("a store that is away is tried every quarter to half a second until it is back or the gate is closed", async () => {
  const one = new OutageGate({ mode: "wait", fleetSize: undefined });
  await one.send();
  await one.time.advance(100);
  one.error = new StoreError("no connection");
  one.exchanges = 0;
  const patient = one.sendAll(1);
  await one.time.advance(10_000);
  assert.ok(one.exchanges >= 20 && one.exchanges <= 41, String(one.exchanges));
  one.error = undefined;
  await one.time.advance(500);
  await patient;
  one.error = new StoreError("no connection");
  const last = assert.rejects(one.send({ maxWaitMs: 100 }), RateLimitExceeded);
  await one.time.advance(5000);
  await last;
  await one.gate.close();
  one.exchanges = 0;
  await one.time.advance(60_000);
  assert.equal(one.exchanges, 0);
  assert.equal(one.time.armedTimers, 0);
});

test("after a call without a reply the store is tried again at once: requests continue one time limit after its return", async () => {
  for (let afterMs = 0; afterMs < 1200; afterMs += 100) {
    const one = new OutageGate({ mode: "wait", fleetSize: undefined });
    await one.send();
    one.error = new StoreError("no reply within 1000 ms");
    one.failsAfterMs = 1000;
    const patient = one.sendAll(1);
    await one.time.advance(5000 + afterMs);
    one.error = undefined;
    await one.time.advance(1101);
    assert.equal(one.sentMs.length, 2, `store back after ${5000 + afterMs} ms`);
    await patient;
    await one.gate.close();
  }
});

test("a store that answers counts as back half a second after another call has failed", async () => {
  const time = new FakeTime();
  const probesMs: number[] = [];
  const probe = () => {
    probesMs.push(time.monotonicUs() / 1000);
    if (!outage.isQuiet) outage.probeWhenQuiet(true);
  };
  const policy = () => ({ mode: "wait", fleetSize: undefined }) as const;
  const outage: StoreOutage = new StoreOutage({ time, random: () => 1, policy, probe });
  outage.failed(new StoreError("x"), 0);
  await time.advance(300);
  outage.failedElsewhere(new StoreError("x"));
  outage.probeLater(true);
  await time.advance(2000);
  assert.deepEqual(probesMs, [800]);
  outage.close();
  outage.failedElsewhere(new StoreError("x"));
  outage.probeWhenQuiet(true);
  assert.equal(time.armedTimers, 0, "a closed store is not asked again");
});

test("a store that answers some calls and refuses others keeps a program alive only while requests wait for it", () => {
  const time = new ReferencedTime();
  const policy = () => ({ mode: "share", fleetSize: undefined }) as const;
  const outage = new StoreOutage({ time, random: () => 1, policy, probe: () => undefined });
  outage.failedElsewhere(new StoreError("x"));
  outage.probeWhenQuiet(false);
  assert.equal(time.armedTimers, 1);
  assert.equal(time.referenced.size, 0);
  outage.probeLater(true);
  assert.equal(time.referenced.size, 1);
  outage.probeWhenQuiet(true);
  assert.equal(time.referenced.size, 1);
});

test("a store that has lost its data is tried at once, and one that loses them again within a second after a pause", async () => {
  const time = new FakeTime();
  const policy = () => ({ mode: "wait", fleetSize: undefined }) as const;
  const outage = new StoreOutage({ time, random: () => 0, policy, probe: () => undefined });
  const isTriedAtOnce = (hasLostData: boolean) => {
    outage.failed(new StoreError("x"), time.monotonicUs(), hasLostData);
    return outage.isProbeDue(time.monotonicUs());
  };
  assert.deepEqual([isTriedAtOnce(false), isTriedAtOnce(true), isTriedAtOnce(true)], [false, true, false]);
  await time.advance(999);
  assert.equal(isTriedAtOnce(true), false);
  await time.advance(1000);
  assert.equal(isTriedAtOnce(true), true);
});

test("the warning about a store that has lost its data does not say that the store does not answer", () => {
  const away = { processes: 2, hasLostData: true, error: new StoreError("the shared store has lost data") };
  assert.equal(
    awayText({ ...away, mode: "share" }),
    "the shared store has lost data; this process uses 1/2 of each rate limit until the processes have reported their use, and calls that need more than that wait (when_store_away: share)",
  );
  assert.equal(
    awayText({ ...away, mode: "wait" }),
    "the shared store has lost data; calls wait until the processes have reported their use (when_store_away: wait)",
  );
});

test("an outage of a separate store of the breakers is reported with its end, and changes no limit", async () => {
  let isAway = false;
  const unlessAway = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    if (isAway) throw new StoreError("no connection");
    return call();
  };
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  const breakerStore = storeWith(member, {
    processes: 1,
    read: name => unlessAway(() => member.read(name)),
    change: (name, step) => unlessAway(() => member.change(name, step)),
  });
  const warnings: string[] = [];
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, {
    breakers: new BreakerRegistry({}, { time, random: () => 0 }),
    store: new MemoryStore(time).member("p"),
    breakerStore,
    awayPolicy: () => ({ mode: "refuse", fleetSize: undefined }),
    warn: message => warnings.push(message),
  });
  const send = async () => {
    (await gate.enter({ host: "a.example", role: "metadata", maxWaitMs: 0 })).giveBack();
    await time.advance(2000);
  };
  await send();
  isAway = true;
  for (let call = 0; call < 3; call += 1) await send();
  isAway = false;
  await send();
  assert.equal(warnings.length, 2);
  assert.match(warnings[0] ?? "", /circuits and cooldowns are not shared until it is back/);
});
