/** How completely a few processes use one limit (law S7). On virtual time, so the numbers are exact. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const LIMIT = 8;
const GUARD_MS = 25;
const HOST = "a.example";

interface Distance {
  /** Milliseconds to the store, in each direction. */
  readonly storeMs: number;
  /** Milliseconds from a request to its answer. */
  readonly answerMs: number;
}

/** Sends the requests of all members, and returns when each of them was written, in milliseconds. */
async function writtenBy(loads: readonly number[], distances: readonly Distance[]): Promise<readonly number[]> {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const defaults = { metadata: { rates: `${LIMIT}/SECOND`, guard_ms: GUARD_MS } };
  const policy = limitPoliciesFrom({ defaults }, "test");
  const writtenMs: number[] = [];
  const calls = loads.flatMap((load, member) => {
    const { storeMs = 0, answerMs = 0 } = distances[member] ?? {};
    const gate = new Gate(policy, time, {
      store: at(store.member(`p${member}`), storeMs, time),
      random: () => 0.5,
      awayPolicy: () => ({ mode: "share", fleetSize: undefined }),
    });
    return Array.from({ length: load }, async () => {
      const grant = await gate.enter({ host: HOST, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
      grant.written();
      writtenMs.push(time.monotonicUs() / 1000);
      await time.sleep(answerMs);
      grant.recordResponse({ isThrottled: false });
      grant.release();
    });
  });
  const all = Promise.all(calls);
  while (writtenMs.length < calls.length) await time.advance(100);
  await time.advance(1000);
  await all;
  return writtenMs;
}

/** A store that is so many milliseconds away. */
function at(member: Store, ms: number, time: FakeTime): Store {
  const travel = async <Value>(arrive: () => Promise<Value>): Promise<Value> => {
    await time.sleep(ms);
    const value = await arrive();
    await time.sleep(ms);
    return value;
  };
  return {
    processId: member.processId,
    get processes() {
      return member.processes;
    },
    exchange: (...about) => travel(() => member.exchange(...about)),
    read: name => travel(() => member.read(name)),
    change: (name, step) => travel(() => member.change(name, step)),
    list: prefix => member.list(prefix),
    close: () => member.close(),
  };
}

test("a few processes with different amounts of work use every unit of every window", async () => {
  const distance = fc.record({
    storeMs: fc.integer({ min: 0, max: 15 }),
    answerMs: fc.integer({ min: 0, max: 60 }),
  });
  const loads = fc.array(fc.integer({ min: 0, max: 24 }), { minLength: 2, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(loads, fc.array(distance, { minLength: 4, maxLength: 4 }), async (work, distances) => {
      const writtenMs = await writtenBy(work, distances);
      const windows = Math.ceil(writtenMs.length / LIMIT);
      const lastMs = Math.max(...writtenMs);
      assert.ok(lastMs < windows * (1000 + GUARD_MS), `${lastMs} ms for ${windows} windows`);
    }),
    { numRuns: 100 },
  );
});
