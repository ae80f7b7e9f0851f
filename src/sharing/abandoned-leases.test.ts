import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "a.example";
const FOREVER = Number.POSITIVE_INFINITY;
const WIDE = { rates: "100/SECOND", guard_ms: 0 };

/** Two processes that share a total of two requests a second. */
class TwoProcesses {
  readonly time = new FakeTime();
  store = new MemoryStore(this.time);
  /** Whether the first process cannot reach the store. */
  isCut = false;
  readonly #gates: readonly Gate[];

  constructor() {
    const policy = limitPoliciesFrom(
      {
        defaults: { metadata: WIDE, landing: WIDE },
        hosts: { [HOST]: { total: { rates: "2/SECOND", guard_ms: 0 } } },
      },
      "test",
    );
    this.#gates = [0, 1].map(index => {
      const name = `p${index}`;
      const store = storeWith(this.store.member(name), {
        processes: 2,
        exchange: async (...parts) => {
          if (this.isCut && index === 0) throw new StoreError("away");
          return this.store.member(name).exchange(...parts);
        },
      });
      return new Gate(policy, this.time, {
        store,
        random: () => 0.5,
        awayPolicy: () => ({ mode: "wait", fleetSize: 2 }),
      });
    });
  }

  grant(process: number, role: "metadata" | "landing") {
    const gate = this.#gates[process];
    assert.ok(gate !== undefined);
    return gate.enter({ host: HOST, role, maxWaitMs: FOREVER });
  }

  async send(process: number): Promise<number> {
    const grant = await this.grant(process, "metadata");
    grant.written();
    grant.release();
    return this.time.monotonicUs() / 1000;
  }
}

/** A request without a lease is written while a later request with a lease is not written yet. */
async function writeInOrder(processes: TwoProcesses, interrupt: () => Promise<void>): Promise<readonly number[]> {
  const { time } = processes;
  const early = await processes.grant(0, "metadata");
  await interrupt();
  const entering = processes.grant(0, "landing");
  await time.advance(5000);
  const late = await entering;
  const beganMs = time.monotonicUs() / 1000;
  early.written();
  early.release();
  await time.advance(0);
  const sent: number[] = [];
  for (let n = 0; n < 2; n += 1) processes.send(1).then(ms => sent.push(ms - beganMs));
  await time.advance(1800);
  late.written();
  late.release();
  await time.advance(2000);
  return sent;
}

test("a request that was granted before the store lost its data does not end the lease of a later one", async () => {
  const processes = new TwoProcesses();
  const sent = await writeInOrder(processes, async () => {
    processes.store = new MemoryStore(processes.time);
  });
  assert.deepEqual(sent, [1000, 2000], "one unit counts for the later request until it is written");
});

test("a request that was granted before the store was out of reach for long does not end the lease of a later one", async () => {
  const processes = new TwoProcesses();
  const sent = await writeInOrder(processes, async () => {
    const { time } = processes;
    processes.isCut = true;
    await time.advance(40_000);
    await processes.send(1);
    processes.isCut = false;
  });
  assert.deepEqual(sent, [1000, 2000], "one unit counts for the later request until it is written");
});
