import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { makeWindow } from "../core/limits/window-log.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";

interface FleetMember {
  readonly gate: Gate;
  exchanges: number;
}

interface Fleet {
  readonly time: FakeTime;
  readonly members: readonly FleetMember[];
}

/** Processes that share a store, and how many exchanges each has made. */
function fleetOf(count: number, limits: object): Fleet {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const policy = limitPoliciesFrom(
    { defaults: { metadata: { guard_ms: 0, max_delay_ms: 60_000, ...limits } } },
    "test",
  );
  const members = Array.from({ length: count }, (_, index) => {
    const own: Store = store.member(`p${index}`);
    const counted: Store = {
      processId: own.processId,
      get processes() {
        return own.processes;
      },
      exchange: (...about) => {
        member.exchanges += 1;
        return own.exchange(...about);
      },
      read: name => own.read(name),
      change: (name, step) => own.change(name, step),
      list: prefix => own.list(prefix),
      close: () => own.close(),
    };
    const awayPolicy = () => ({ mode: "share", fleetSize: undefined }) as const;
    const member = { gate: new Gate(policy, time, { store: counted, random: () => 0.5, awayPolicy }), exchanges: 0 };
    return member;
  });
  return { time, members };
}

/** Sends requests one after the other, each as soon as the one before was written. */
async function sendInTurn({ gate }: FleetMember, count: number, options: object = {}): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    const grant = await gate.enter({ host: HOST, role: "metadata", ...options });
    grant.written();
    grant.release();
  }
}

function memberOf({ members }: Fleet, index: number): FleetMember {
  const member = members[index];
  assert.ok(member !== undefined);
  return member;
}

test("a caller that sends one request after the other needs few exchanges", async () => {
  const fleet = fleetOf(1, { rates: "100000/SECOND" });
  const member = memberOf(fleet, 0);
  await sendInTurn(member, 1000);
  // Leases of 1, 4, 16 and 64 units, and from then on one for each 64. Each settles the units of the one before.
  assert.equal(member.exchanges, 4 + Math.ceil((1000 - 85) / 64));
});

test("of a small limit no unit is leased that no request waits for", async () => {
  const fleet = fleetOf(2, { rates: "20/SECOND" });
  await sendInTurn(memberOf(fleet, 0), 8);
  await sendInTurn(memberOf(fleet, 1), 12, { maxWaitMs: 0 });
  assert.equal(fleet.time.monotonicUs(), 0);
});

test("spare units are for the other processes again after a twentieth of the window", async () => {
  const fleet = fleetOf(2, { rates: "800/SECOND" });
  const [first, second] = [memberOf(fleet, 0), memberOf(fleet, 1)];
  await sendInTurn(first, 6);
  await fleet.time.advance(50);
  await sendInTurn(second, 794, { maxWaitMs: 0 });
  assert.equal(fleet.time.monotonicUs(), 50_000);
});

test("with even spacing no unit is leased that no request waits for", async () => {
  const fleet = fleetOf(1, { rates: "10000/SECOND", shape: "smooth" });
  const member = memberOf(fleet, 0);
  const sent = sendInTurn(member, 20);
  await fleet.time.advance(1000);
  await sent;
  assert.ok(member.exchanges >= 20, `${member.exchanges} exchanges`);
});

test("spare units are returned when the process ends", async () => {
  const fleet = fleetOf(2, { rates: "800/SECOND" });
  const [first, second] = [memberOf(fleet, 0), memberOf(fleet, 1)];
  await sendInTurn(first, 6);
  await first.gate.close();
  await sendInTurn(second, 794, { maxWaitMs: 0 });
  assert.equal(fleet.time.monotonicUs(), 0);
});

test("over all processes law L1 holds with spare units, and no unit is lost", async () => {
  const pause = fc.integer({ min: 0, max: 120 });
  const callers = fc.array(fc.record({ process: fc.nat(2), startMs: fc.nat(400), pause, count: fc.nat(400) }), {
    minLength: 1,
    maxLength: 6,
  });
  await fc.assert(
    fc.asyncProperty(callers, fc.integer({ min: 30, max: 1500 }), async (drawn, limit) => {
      const fleet = fleetOf(3, { rates: `${limit}/SECOND` });
      const { time } = fleet;
      const writtenMs: number[] = [];
      const done = drawn.map(async ({ process, startMs, pause: pauseMs, count }) => {
        await time.sleep(startMs);
        for (let sent = 0; sent < count; sent += 1) {
          await sendInTurn(memberOf(fleet, process), 1);
          writtenMs.push(time.monotonicUs() / 1000);
          if (sent % 50 === 49) await time.sleep(pauseMs);
        }
      });
      await time.advance(60_000);
      await Promise.all(done);
      writtenMs.sort((a, b) => a - b);
      for (const [index, ms] of writtenMs.entries())
        assert.ok(
          (writtenMs[index + limit] ?? Number.POSITIVE_INFINITY) - ms >= 1000,
          `more than ${limit} from ${ms} ms`,
        );
      // What was leased and not used is free again: the whole limit is left, less the grain of its window.
      const { grain } = makeWindow(limit, 1_000_000);
      await sendInTurn(memberOf(fleet, 2), limit - grain + 1, { maxWaitMs: 0 });
      assert.equal(time.monotonicUs(), 60_000_000);
    }),
    { numRuns: 50 },
  );
});
