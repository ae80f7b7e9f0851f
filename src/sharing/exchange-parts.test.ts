import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { LeaseRequest, UseReport } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { MAX_PARTS } from "./exchange-parts.ts";

/** The keys of one exchange that the store has answered. */
interface Exchange {
  readonly requested: readonly string[];
  readonly reported: readonly string[];
  /** Keys with units that were sent without a lease. */
  readonly sent: readonly string[];
}

/** A process that uses many hosts. Its store answers after 1 ms, and fails while `isDown`. */
class ManyHosts {
  readonly time = new FakeTime();
  readonly exchanges: Exchange[] = [];
  readonly gate: Gate;
  store = new MemoryStore(this.time);
  isDown = false;
  /** The store fails after this many further exchanges. */
  answers = Number.POSITIVE_INFINITY;

  constructor(mode: "share" | "wait") {
    const metadata = { rates: "10/SECOND", costs: { credits: "1000/MINUTE" }, guard_ms: 0, max_delay_ms: 60_000 };
    this.gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), this.time, {
      store: storeWith(this.store.member("p"), {
        processes: 2,
        exchange: async (settlements, requests, reports = [], dead = []) => {
          assert.ok(Math.max(settlements.length, requests.length, reports.length) <= MAX_PARTS);
          await this.time.sleep(1);
          this.answers -= 1;
          if (this.isDown || this.answers < 0) throw new StoreError("no connection");
          this.exchanges.push(keysOf(requests, reports));
          return this.store.member("p").exchange(settlements, requests, reports, dead);
        },
      }),
      random: () => 0.5,
      awayPolicy: () => ({ mode, fleetSize: undefined }),
    });
  }

  async send(host: string, credits = 0): Promise<void> {
    const grant = await this.gate.enter({ host, role: "metadata", costs: { credits }, maxWaitMs: 60_000 });
    grant.written();
    grant.release();
  }

  /** Sends one request to each of these hosts at once. Returns how many are granted. */
  async sendToAll(count: number, credits = 0): Promise<number> {
    let granted = 0;
    for (let host = 0; host < count; host += 1)
      void this.send(`h${host}.example`, credits).then(() => {
        granted += 1;
      });
    await this.time.advance(3000);
    return granted;
  }
}

function keysOf(requests: readonly LeaseRequest[], reports: readonly UseReport[]): Exchange {
  return {
    requested: requests.flatMap(({ claims }) => claims.map(({ key }) => key)),
    reported: reports.map(({ claim }) => claim.key),
    sent: reports.filter(({ sent }) => sent > 0).map(({ claim }) => claim.key),
  };
}

test("2,000 hosts at once are leased in exchanges of bounded size, and all are granted", async () => {
  const one = new ManyHosts("wait");
  assert.equal(await one.sendToAll(2000, 1), 2000);
  const closed = one.gate.close();
  await one.time.advance(3000);
  await closed;
});

test("after an outage of a process with many hosts, no unit is leased before all reports", async () => {
  for (const mode of ["share", "wait"] as const) {
    const one = new ManyHosts(mode);
    assert.equal(await one.sendToAll(500), 500);
    one.isDown = true;
    await one.sendToAll(100);
    await one.time.advance(2000);
    one.exchanges.length = 0;
    one.store = new MemoryStore(one.time);
    one.isDown = false;
    // The store fails again after some of the reports.
    one.answers = 5;
    await one.time.advance(100);
    one.answers = Number.POSITIVE_INFINITY;
    await one.time.advance(5000);
    const next = one.sendToAll(500);
    await one.time.advance(3000);
    assert.equal(await next, 500);
    const first = one.exchanges.findIndex(({ requested }) => requested.length > 0);
    const before = one.exchanges.slice(0, first + 1);
    assert.equal(new Set(before.flatMap(({ reported }) => reported)).size, 500);
    assert.equal(before.flatMap(({ reported }) => reported).length, 500, "each is reported once");
    const sent = before.flatMap(({ sent }) => sent);
    assert.equal(sent.length, mode === "share" ? 100 : 0, "each unit is reported once");
  }
});
