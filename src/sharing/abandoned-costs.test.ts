import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";
const FOREVER = Number.POSITIVE_INFINITY;

/** Two processes that share 20 credits a second. */
class TwoProcesses {
  readonly time = new FakeTime();
  store = new MemoryStore(this.time);
  /** Whether the first process cannot reach the store. */
  isCut = false;
  readonly #gates: readonly Gate[];

  constructor() {
    const metadata = { rates: "100/SECOND", costs: { credits: "20/SECOND" }, guard_ms: 0 };
    const policy = limitPoliciesFrom({ hosts: { [HOST]: { metadata } } }, "test");
    this.#gates = [0, 1].map(index => {
      const name = `p${index}`;
      const store = storeWith(this.store.member(name), {
        processes: 2,
        exchange: async (...parts) => {
          if (this.isCut && index === 0) throw new StoreError("away");
          return this.store.member(name).exchange(...parts);
        },
      });
      const awayPolicy = () => ({ mode: "wait", fleetSize: 2 }) as const;
      return new Gate(policy, this.time, { store, random: () => 0.5, awayPolicy });
    });
  }

  async grant(process: number, credits: number): Promise<Grant> {
    const gate = this.#gates[process];
    assert.ok(gate !== undefined);
    return gate.enter({ host: HOST, role: "metadata", costs: { credits }, maxWaitMs: FOREVER });
  }

  /** When the process sends each of two requests of 10 credits, in milliseconds since now. */
  sendTwo(process: number): number[] {
    const beganMs = this.time.monotonicUs() / 1000;
    const sent: number[] = [];
    for (let n = 0; n < 2; n += 1)
      void this.grant(process, 10).then(grant => {
        sent.push(this.time.monotonicUs() / 1000 - beganMs);
        grant.release();
      });
    return sent;
  }
}

/** A request whose lease has ended is settled while a later one has a lease and is not written yet. */
async function settleInOrder(processes: TwoProcesses, interrupt: () => Promise<void>): Promise<readonly number[]> {
  const { time } = processes;
  const entering = processes.grant(0, 10);
  await time.advance(100);
  const early = await entering;
  await interrupt();
  const later = processes.grant(0, 10);
  await time.advance(5000);
  const late = await later;
  early.release();
  await time.advance(10);
  const sent = processes.sendTwo(1);
  await time.advance(1800);
  late.release();
  await time.advance(3000);
  return sent;
}

const REASON = "10 credits count for the later request until it is written";

test("costs of a request that was granted before the store lost its data do not end the lease of a later one", async () => {
  const processes = new TwoProcesses();
  const sent = await settleInOrder(processes, async () => {
    processes.store = new MemoryStore(processes.time);
  });
  assert.deepEqual(sent, [990, 1990], REASON);
});

test("costs of a request that was granted before the store was out of reach for long do not end the lease of a later one", async () => {
  const processes = new TwoProcesses();
  const sent = await settleInOrder(processes, async () => {
    const { time } = processes;
    processes.isCut = true;
    await time.advance(40_000);
    void processes.grant(1, 10).then(grant => grant.release());
    await time.advance(100);
    processes.isCut = false;
  });
  assert.deepEqual(sent, [990, 1990], REASON);
});
