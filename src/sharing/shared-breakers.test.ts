import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import type { BreakerEvent } from "../breaker/breaker-events.ts";
import { Breakers } from "../breaker/breakers.ts";
import { StoreError } from "../errors.ts";
import { breakerPoliciesFrom } from "../policy/breaker-policy.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { SharedBreakers } from "./shared-breakers.ts";

const REQUEST = { host: "a.example" };
const circuit = { fail_max: 2, reset_timeout_s: 10 };
const POLICIES = breakerPoliciesFrom(
  {
    defaults: { ...circuit, roles: { metadata: circuit }, half_open: { jitter_ms: 0, trial_calls: { metadata: 1 } } },
    advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
  },
  "test",
);

/** Two registries' worth of breakers on one memory store. `store` can be made to fail. */
function setUp() {
  const time = new FakeTime();
  const memory = new MemoryStore(time);
  const failure: { error?: StoreError | undefined } = {};
  const make = (name: string) => {
    const breakers = new Breakers(POLICIES, time, () => 0);
    const events: BreakerEvent[] = [];
    const warnings: string[] = [];
    breakers.emitter.add(event => events.push(event));
    const store = failing(memory.member(name), failure);
    const shared = new SharedBreakers({ store, breakers, time, warn: message => warnings.push(message) });
    const allow = () => breakers.tryAllow(REQUEST, shared.probes);
    const end = (kind: "success" | "failure") => {
      const permit = allow();
      assert.ok(permit.isAllowed);
      permit.report({
        outcome: kind === "success" ? { kind } : { kind, cause: "status", throttled: false },
        status: 503,
      });
    };
    const state = () => breakers.check(REQUEST)?.state ?? "allowed";
    return { breakers, shared, events, warnings, allow, end, state };
  };
  return { time, failure, a: make("a"), b: make("b") };
}

function failing(store: Store, failure: { readonly error?: StoreError | undefined }): Store {
  const unlessFailing = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    if (failure.error !== undefined) throw failure.error;
    return call();
  };
  return storeWith(store, {
    processes: 2,
    signals: store.signals,
    read: name => unlessFailing(() => store.read(name)),
    change: (name, step) => unlessFailing(() => store.change(name, step)),
  });
}

const named = (events: readonly BreakerEvent[], name: string) => events.filter(({ event_type }) => event_type === name);

test("an outage is reported once, and what happened during it is published when the store is back", async () => {
  const { time, failure, a, b } = setUp();
  await a.shared.refresh(REQUEST);
  failure.error = new StoreError("no connection");
  await time.advance(1000);
  for (const _ of [1, 2]) {
    await a.shared.refresh(REQUEST);
    a.end("failure");
  }
  assert.equal(a.state(), "open");
  assert.equal(named(a.events, "store_away").length, 1);
  assert.match(a.warnings[0] ?? "", /no connection; circuits and cooldowns are not shared until it is back$/);
  await time.advance(1000);
  failure.error = undefined;
  await a.shared.refresh(REQUEST);
  await b.shared.refresh(REQUEST);
  assert.equal(b.state(), "open");
  assert.deepEqual(named(a.events, "store_back"), [{ event_type: "store_back", away_ms: 1000 }]);
  assert.equal(a.warnings.length, 2);
});

test("a caller that does not wait gets the permission to probe with its next call, within the time that its denial names", async () => {
  const { time, a } = setUp();
  await a.shared.refresh(REQUEST);
  a.end("failure");
  a.end("failure");
  await time.advance(10_000);
  a.shared.refreshLater(REQUEST);
  const denial = a.allow();
  assert.ok(!denial.isAllowed);
  await time.advance(denial.retryAfterMs);
  assert.ok(a.allow().isAllowed);
});

test("refresh asks for the permission to probe, and one of two processes gets it", async () => {
  const { time, a, b } = setUp();
  await Promise.all([a.shared.refresh(REQUEST), b.shared.refresh(REQUEST)]);
  a.end("failure");
  a.end("failure");
  await time.advance(10_000);
  await a.shared.refresh(REQUEST);
  await b.shared.refresh(REQUEST);
  assert.deepEqual([a.allow().isAllowed, b.allow().isAllowed], [true, false]);
});

test("a permanent error before the first contact rejects, and one after it is an outage", async () => {
  const { time, failure, a, b } = setUp();
  await a.shared.refresh(REQUEST);
  failure.error = new StoreError("wrong password", { isPermanent: true });
  await time.advance(1000);
  await a.shared.refresh(REQUEST);
  await assert.rejects(b.shared.refresh(REQUEST), /wrong password/);
  await assert.rejects(b.shared.refresh(REQUEST), /wrong password/);
  failure.error = undefined;
  await time.advance(1000);
  await b.shared.refresh(REQUEST).catch(() => undefined);
  await b.shared.refresh(REQUEST);
});

test("after close the breakers go on by themselves, and keep no changes", async () => {
  const { a, b } = setUp();
  await a.shared.refresh(REQUEST);
  await a.shared.close();
  await a.shared.close();
  a.end("failure");
  a.end("failure");
  assert.equal(a.state(), "open");
  assert.deepEqual(a.breakers.takeChanges(), []);
  await a.shared.refresh(REQUEST);
  await b.shared.refresh(REQUEST);
  assert.equal(b.state(), "allowed");
});

test("a process that closes returns the permission to probe that it has not used, also one that it has just requested", async () => {
  for (const isGranted of [true, false]) {
    const { time, a, b } = setUp();
    await a.shared.refresh(REQUEST);
    for (let n = 0; n < 2; n += 1) a.end("failure");
    await time.advance(10_000);
    const refreshing = a.shared.refresh(REQUEST);
    if (isGranted) await refreshing;
    await a.shared.close();
    await b.shared.refresh(REQUEST);
    assert.equal(b.allow().isAllowed, true);
  }
});
