/** Calls that do not wait (`tryEnter`, `check`), with limits that processes share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { host, role } from "../../test/limiter/kit.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { HostLimits } from "../policy/ratelimit-schema.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";

/** Two gates that share a store, as in separate processes. */
function pairOf(limits: HostLimits) {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const policies = limitPoliciesFrom({ hosts: { [host]: limits } }, "test");
  const [one, other] = ["p0", "p1"].map(name => new Gate(policies, time, { store: store.member(name) }));
  assert.ok(one && other);
  /** Calls every 100 ms that do not wait; returns which were granted. */
  const tries = async (gate: Gate, count: number) => {
    const granted: boolean[] = [];
    for (let call = 0; call < count; call += 1) {
      const grant = gate.tryEnter({ host, role, stamp: "granted" });
      granted.push(grant !== undefined);
      grant?.release();
      await time.advance(100);
    }
    return granted;
  };
  return { time, one, other, tries };
}

test("with a store a call that does not wait is refused, and asks the store for the next call", async () => {
  const { one, tries } = pairOf({ metadata: { rates: "10/s", guard_ms: 0 } });
  assert.equal(one.check({ host, role }), undefined);
  assert.deepEqual(await tries(one, 4), [false, true, false, true]);
});

test("calls that do not wait keep the limit of all processes together, and check knows it from the store", async () => {
  const { one, other, tries } = pairOf({ metadata: { rates: "4/HOUR", guard_ms: 0 } });
  assert.deepEqual(await tries(one, 6), [false, true, false, true, false, true]);
  assert.deepEqual(await tries(other, 4), [false, true, false, false]);
  const refusal = other.check({ host, role });
  assert.ok(refusal);
  assert.ok((refusal.retryAfterMs ?? 0) > 3_500_000);
  assert.deepEqual(await tries(one, 4), Array(4).fill(false));
});

test("what a call that does not wait has leased is free for the other processes after a second", async () => {
  for (const [limits, refused] of [
    [{ metadata: { rates: "1/HOUR" } }, 1],
    [{ metadata: { rates: "99/s", costs: { credits: "1/HOUR" } } }, 2],
    [{ metadata: { rates: "99/s" }, total: { max_concurrent: 1, shared: true } }, 2],
  ] satisfies [HostLimits, number][]) {
    const { time, one, other, tries } = pairOf(limits);
    assert.deepEqual(await tries(one, refused), Array(refused).fill(false));
    await time.advance(1500);
    assert.deepEqual(await tries(other, refused + 1), [...Array(refused).fill(false), true]);
  }
});

test("calls that do not wait lease shared slots, units and costs one after the other", async () => {
  const metadata = { rates: "99/s", costs: { credits: "99/HOUR" } };
  const { one, tries } = pairOf({ metadata, total: { max_concurrent: 1, shared: true } });
  assert.deepEqual(await tries(one, 4), [false, false, false, true]);
});
