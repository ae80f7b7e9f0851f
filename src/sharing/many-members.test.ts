/** How evenly and how cheaply many processes share one limit (law S7). On virtual time, so the numbers are exact. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../../sim/random.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Time } from "../time/time.ts";

const LIMIT = 20;
const WINDOW_MS = 1000;

interface Members {
  /** Requests that each member has written. */
  readonly sent: readonly number[];
  /** When each request was written, in milliseconds. */
  readonly writtenMs: readonly number[];
  readonly exchanges: number;
}

/** What takes time, in milliseconds. */
interface Durations {
  /** The way to the store, in each direction. */
  readonly delayMs: (member: number) => number;
  /** From a grant until the headers are written. @default 0 */
  readonly writeMs?: () => number;
  /** How late the timers of a member are. @default 0 */
  readonly lateMs?: () => number;
}

/** Every member wants more than its share. */
async function runMembers(
  count: number,
  seconds: number,
  { delayMs, writeMs = () => 0, lateMs = () => 0 }: Durations,
): Promise<Members> {
  const time = new FakeTime();
  const memberTime: Time = {
    monotonicUs: () => time.monotonicUs(),
    machineUs: () => time.machineUs(),
    wallMs: () => time.wallMs(),
    setTimer: (ms, fire) => time.setTimer(ms + lateMs(), fire),
    sleep: (ms, signal) => time.sleep(ms, signal),
  };
  const store = new MemoryStore(time);
  const defaults = { metadata: { rates: `${LIMIT}/SECOND`, guard_ms: 0, max_delay_ms: 3_600_000 } };
  const policy = limitPoliciesFrom({ defaults }, "test");
  const sent = Array<number>(count).fill(0);
  const writtenMs: number[] = [];
  let exchanges = 0;
  const pass = async (ms: number) => {
    if (ms > 0) await time.sleep(ms);
  };
  const travel = async <Value>(delay: () => number, arrive: () => Promise<Value>): Promise<Value> => {
    await pass(delay());
    const value = await arrive();
    await pass(delay());
    return value;
  };
  const delayed = (member: Store, delay: () => number): Store => ({
    processId: member.processId,
    get processes() {
      return member.processes;
    },
    exchange: (...about) => {
      exchanges += 1;
      return travel(delay, () => member.exchange(...about));
    },
    read: name => travel(delay, () => member.read(name)),
    change: (name, step) => travel(delay, () => member.change(name, step)),
    list: prefix => member.list(prefix),
    close: () => member.close(),
  });
  const send = async (gate: Gate, member: number) => {
    for (;;) {
      const grant = await gate.enter({ host: "a.example", role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
      await pass(writeMs());
      grant.written();
      grant.release();
      // In the first second the members are not in balance yet.
      if (time.monotonicUs() >= 2_000_000) sent[member] = (sent[member] ?? 0) + 1;
      writtenMs.push(time.monotonicUs() / 1000);
    }
  };
  for (let member = 0; member < count; member += 1) {
    const gate = new Gate(policy, memberTime, {
      store: delayed(store.member(`p${member}`), () => delayMs(member)),
      // Breakers would make the run of a thousand members slow, and need no exchange of units.
      ...(count < 1000 && { breakers: new BreakerRegistry({}, { time }) }),
      random: () => 0.5,
      awayPolicy: () => ({ mode: "share", fleetSize: undefined }),
    });
    const callers = count === 1 ? 2 * LIMIT : 4;
    for (let caller = 0; caller < callers; caller += 1) void send(gate, member);
  }
  await time.advance(seconds * 1000);
  return { sent, writtenMs, exchanges };
}

function assertWithinLimit(writtenMs: readonly number[]): void {
  for (const [index, ms] of writtenMs.entries()) {
    const next = writtenMs[index + LIMIT];
    if (next !== undefined) assert.ok(next - ms >= WINDOW_MS, `${LIMIT + 1} within ${next - ms} ms`);
  }
}

test("a thousand members share one limit: each has its share, and a request takes fewer than three exchanges", async () => {
  const { sent, writtenMs, exchanges } = await runMembers(1000, 60, { delayMs: () => 0 });
  assertWithinLimit(writtenMs);
  assert.ok(writtenMs.length >= 0.9 * LIMIT * 60, String(writtenMs.length));
  assert.equal(Math.min(...sent), 1, "no member is left out");
  assert.ok(exchanges < 3 * writtenMs.length, `${exchanges} for ${writtenMs.length}`);
});

test("a thousand members that are served late share one limit: each has its share, and a request takes fewer than three exchanges", async () => {
  const random = new Random(1);
  const { sent, writtenMs, exchanges } = await runMembers(1000, 65, {
    delayMs: () => random.whole(1, 5),
    writeMs: () => random.whole(2, 10),
    lateMs: () => random.whole(0, 2),
  });
  assertWithinLimit(writtenMs);
  assert.ok(writtenMs.length >= 0.95 * LIMIT * 65, String(writtenMs.length));
  assert.equal(Math.min(...sent), 1, "no member is left out");
  assert.ok(exchanges < 3 * writtenMs.length, `${exchanges} for ${writtenMs.length}`);
});

test("a member alone at a store 100 ms away reaches 95 % of the limit", async () => {
  const { writtenMs } = await runMembers(1, 30, { delayMs: () => 100 });
  assertWithinLimit(writtenMs);
  assert.ok(writtenMs.length >= 0.95 * LIMIT * 30, String(writtenMs.length));
});

test("ten members at 0 to 200 ms from the store get equal shares", async () => {
  const { sent, writtenMs } = await runMembers(10, 30, { delayMs: member => (200 * member) / 9 });
  assertWithinLimit(writtenMs);
  assert.ok(Math.min(...sent) >= 0.8 * Math.max(...sent), String(sent));
});
