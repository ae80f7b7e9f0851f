import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { HubClosedError, StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { HostLimits } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";
const METADATA = { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 60_000 };
const CALL = { host: HOST, role: "metadata", costs: { credits: 1 }, maxWaitMs: Number.POSITIVE_INFINITY } as const;

const RATES: HostLimits = { metadata: { ...METADATA, rates: "1/SECOND" } };
const COSTS: HostLimits = { metadata: { ...METADATA, costs: { credits: "1/SECOND" } } };
const SLOTS: HostLimits = { metadata: METADATA, total: { max_concurrent: 1, shared: true } };

/**
 * Two processes whose store takes 5 ms for each call in both directions, and 10 ms for costs. When it is closed, it
 * refuses calls.
 */
function processesOf(limits: HostLimits, mode: "share" | "wait" = "wait") {
  const time = new FakeTime();
  const memory = new MemoryStore(time);
  const events: LimiterEvent[] = [];
  const warnings: string[] = [];
  const slow = (member: Store): Store => {
    let isClosed = false;
    const reach = async <Value>(run: () => Promise<Value>, ms = 5): Promise<Value> => {
      if (isClosed) throw new StoreError("the store is closed");
      await time.sleep(ms);
      const value = await run();
      await time.sleep(ms);
      return value;
    };
    return storeWith(member, {
      exchange: (settlements, requests, ...more) => {
        const hasCosts = requests.some(({ claims }) => claims.some(({ key }) => key.endsWith("credits")));
        return reach(() => member.exchange(settlements, requests, ...more), hasCosts ? 10 : 5);
      },
      change: (name, step) => reach(() => member.change(name, step)),
      close: async () => {
        isClosed = true;
      },
    });
  };
  const policy = limitPoliciesFrom({ hosts: { [HOST]: limits } }, "test");
  const gateOf = (name: string) =>
    new Gate(policy, time, {
      store: slow(memory.member(name)),
      random: () => 0.5,
      awayPolicy: () => ({ mode, fleetSize: undefined }),
      warn: message => warnings.push(message),
      listener: event => {
        events.push(event);
      },
    });
  return { time, closing: gateOf("p0"), other: gateOf("p1"), events, warnings };
}

for (const [title, limits] of [
  ["units that a store grants while a process closes are free for the others at once", RATES],
  ["costs that a store grants while a process closes are free for the others at once", COSTS],
  ["slots that a store grants while a process closes are free for the others at once", SLOTS],
] as const)
  test(title, async () => {
    const { time, closing, other } = processesOf(limits);
    const controller = new AbortController();
    const aborted = Promise.resolve(closing.enter({ ...CALL, signal: controller.signal }));
    // Costs are requested when the units are leased, 10 ms later than the others.
    await time.advance(limits === COSTS ? 12 : 2);
    controller.abort();
    await assert.rejects(aborted, { name: "AbortError" });
    const closed = closing.close();
    await time.advance(100);
    await closed;
    let isGranted = false;
    void Promise.resolve(other.enter(CALL)).then(() => {
      isGranted = true;
    });
    await time.advance(100);
    assert.equal(isGranted, true);
  });

for (const [title, limits] of [
  ["requests that wait for units reject when their process closes, without a warning", RATES],
  ["requests that wait for costs reject when their process closes, without a warning", COSTS],
  ["requests that wait for slots reject when their process closes, without a warning", SLOTS],
] as const)
  test(title, async () => {
    for (const mode of ["share", "wait"] as const) {
      const { time, closing, events, warnings } = processesOf(limits, mode);
      const entering = Promise.resolve(closing.enter(CALL));
      await time.advance(100);
      const grant = await entering;
      grant.written();
      const errors: unknown[] = [];
      for (let n = 0; n < 3; n += 1) Promise.resolve(closing.enter(CALL)).catch(error => errors.push(error));
      await time.advance(20);
      const closed = closing.close();
      await time.advance(0);
      assert.equal(errors.length, 3);
      assert.ok(errors.every(error => error instanceof HubClosedError));
      assert.equal(closing.waiting, 0);
      await time.advance(100);
      await closed;
      grant.release();
      assert.throws(() => closing.enter(CALL), HubClosedError);
      assert.throws(() => closing.tryEnter(CALL), HubClosedError);
      await time.advance(60_000);
      assert.equal(errors.length, 3);
      assert.deepEqual(warnings, []);
      const outcomes = events.map(event =>
        event.event_type === "ratelimit.acquire" ? event.outcome : event.event_type,
      );
      assert.deepEqual(outcomes, ["granted", "aborted", "aborted", "aborted"]);
      assert.equal(time.armedTimers, 0);
    }
  });
