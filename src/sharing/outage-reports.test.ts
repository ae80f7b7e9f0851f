import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { Gate } from "../gate/gate.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOSTS = Array.from({ length: 6 }, (_, index) => `h${index}.example`);

/** Busy processes on six hosts of 20 requests per second each. Every exchange takes a round trip. */
class BusyProcesses {
  readonly time = new FakeTime();
  readonly events: LimiterEvent[] = [];
  readonly sentMs = new Map<string, number[]>(HOSTS.map(host => [host, []]));
  store = new MemoryStore(this.time);

  constructor(count: number, roundTripMs: number, mode: "share" | "wait") {
    const metadata = { rates: "20/SECOND", guard_ms: 0, max_delay_ms: 3_600_000 };
    const limits = limitPoliciesFrom({ defaults: { metadata } }, "test");
    for (let index = 0; index < count; index += 1) {
      const name = `p${index}`;
      const slow = storeWith(this.store.member(name), {
        processes: count,
        exchange: async (...parts) => {
          await this.time.sleep(roundTripMs / 2);
          const replies = await this.store.member(name).exchange(...parts);
          await this.time.sleep(roundTripMs / 2);
          return replies;
        },
      });
      const gate = new Gate(limits, this.time, {
        store: slow,
        random: () => 0.5,
        awayPolicy: () => ({ mode, fleetSize: undefined }),
        listener: event => {
          if (index === 0 && event.event_type.startsWith("store_")) this.events.push(event);
        },
      });
      for (const host of HOSTS) for (let caller = 0; caller < 4; caller += 1) void this.#send(gate, host);
    }
  }

  get nowMs(): number {
    return this.time.monotonicUs() / 1000;
  }

  async #send(gate: Gate, host: string): Promise<never> {
    for (;;) {
      const grant = await gate.enter({ host, role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
      await this.time.sleep(3);
      grant.written();
      this.sentMs.get(host)?.push(this.nowMs);
      grant.release();
    }
  }

  get kinds(): readonly string[] {
    return this.events.map(({ event_type }) => event_type);
  }

  assertLimitKept(): void {
    for (const sent of this.sentMs.values())
      for (const ms of sent) assert.ok(sent.filter(other => other > ms - 1000 && other <= ms).length <= 20);
  }
}

test("one loss of data is reported once, however slow the store is", async () => {
  for (const mode of ["share", "wait"] as const)
    for (const roundTripMs of [20, 50, 200]) {
      const all = new BusyProcesses(2, roundTripMs, mode);
      await all.time.advance(5000);
      all.store = new MemoryStore(all.time);
      await all.time.advance(8000);
      assert.deepEqual(all.kinds, ["store_away", "store_back"], `${mode}, ${roundTripMs} ms`);
      all.assertLimitKept();
    }
});
