/** The behaviour of budgets in every store. Stores run on a clock that only the test advances. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import {
  type BudgetStore,
  LEASE_MS,
  type LeaseReply,
  type LeaseRequest,
  type Store,
  type StoreClaim,
} from "../../src/stores/store.ts";

/** An empty store. */
export interface TestedStore {
  /** Opens the store for one more process. */
  member(): Promise<Store>;
  advance(ms: number): Promise<void>;
}

const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;

function claim(key: string, ...rates: readonly (readonly [limit: number, windowUs: number])[]): StoreClaim {
  const windows = rates.map(([limit, windowUs]) => ({ limit, windowUs, spanUs: windowUs }));
  return { key, windows, spacingUs: 0 };
}

function one(key: string, limit: number, windowUs = SECOND): LeaseRequest {
  return { claims: [claim(key, [limit, windowUs])], least: 1, most: 1 };
}

async function ask(store: BudgetStore, wanted: LeaseRequest): Promise<LeaseReply> {
  const [reply] = await store.exchange([], [wanted]);
  assert.ok(reply !== undefined);
  return reply;
}

async function units(store: BudgetStore, wanted: LeaseRequest): Promise<number> {
  const reply = await ask(store, wanted);
  return reply.kind === "granted" ? reply.units : 0;
}

async function waitMs(store: BudgetStore, wanted: LeaseRequest): Promise<number> {
  const reply = await ask(store, wanted);
  return reply.kind === "wait" ? reply.waitMs : 0;
}

function written(store: BudgetStore, count: number, ...keys: readonly string[]): Promise<unknown> {
  return store.exchange([{ keys, written: count, returned: 0 }], []);
}

function returned(store: BudgetStore, count: number, ...keys: readonly string[]): Promise<unknown> {
  return store.exchange([{ keys, written: 0, returned: count }], []);
}

export function storeContract(name: string, open: (t: TestContext) => Promise<TestedStore>): void {
  const it = (sentence: string, run: (tested: TestedStore) => Promise<void>) =>
    test(`${name}: ${sentence}`, async t => run(await open(t)));

  it("a unit leased by one process is not granted to another until its window has passed since the write", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.deepEqual(await ask(a, one("k", 1)), { kind: "granted", units: 1, isStricter: false });
    await tested.advance(400);
    assert.equal(await units(b, one("k", 1)), 0);
    await written(a, 1, "k");
    await tested.advance(999.999);
    assert.deepEqual(await ask(b, one("k", 1)), { kind: "wait", waitMs: 0.001, key: "k", isStricter: false });
    await tested.advance(0.001);
    assert.equal(await units(b, one("k", 1)), 1);
  });

  it("a returned unit can be leased at once", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.equal(await units(a, { ...one("k", 2), most: 2 }), 2);
    await returned(a, 1, "k");
    assert.equal(await units(b, one("k", 2)), 1);
    assert.equal(await units(b, one("k", 2)), 0);
  });

  it("the units of a process that is reported dead count as written then", async tested => {
    const [dead, b] = [await tested.member(), await tested.member()];
    assert.equal(await units(dead, { ...one("k", 2), most: 2 }), 2);
    await written(dead, 1, "k");
    await tested.advance(500);
    const [reply] = await b.exchange([], [one("k", 2)], [], [dead.processId, "unknown"]);
    assert.deepEqual(reply, { kind: "wait", waitMs: 500, key: "k", isStricter: false });
    await tested.advance(500);
    assert.equal(await units(b, one("k", 2)), 1);
    await written(b, 1, "k");
    await tested.advance(499);
    assert.equal(await units(b, one("k", 2)), 0);
    await tested.advance(1);
    assert.equal(await units(b, one("k", 2)), 1);
  });

  it("one exchange settles and then leases", async tested => {
    const a = await tested.member();
    assert.equal(await units(a, one("k", 1)), 1);
    const [reply] = await a.exchange([{ keys: ["k"], written: 0, returned: 1 }], [one("k", 1)]);
    assert.equal(reply?.kind, "granted");
  });

  it("all budgets of a request are charged, or none", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const wantedBoth = (role: string): LeaseRequest => ({
      claims: [claim(role, [5, SECOND]), claim("total", [2, 10 * SECOND])],
      least: 1,
      most: 5,
    });
    assert.equal(await units(a, wantedBoth("role 1")), 2);
    const refused = await ask(b, wantedBoth("role 2"));
    assert.deepEqual(refused, { kind: "wait", waitMs: 10_000, key: "total", isStricter: false });
    const alone: LeaseRequest = { claims: [claim("role 2", [5, SECOND])], least: 5, most: 5 };
    assert.equal(await units(b, alone), 5, "no unit was charged to the role budget");
    await written(a, 2, "role 1", "total");
    assert.equal((await ask(b, wantedBoth("role 2"))).kind, "wait");
  });

  it("a grant is never below least and never above most", async tested => {
    const a = await tested.member();
    const wanted = (least: number, most: number): LeaseRequest => ({ ...one("k", 5), least, most });
    assert.equal(await units(a, wanted(1, 3)), 3);
    assert.equal(await units(a, wanted(3, 9)), 0);
    assert.equal(await units(a, wanted(2, 9)), 2);
  });

  it("a request that waits as long as the reply said is granted", async tested => {
    const a = await tested.member();
    const wanted: LeaseRequest = { claims: [claim("k", [3, SECOND], [5, 7 * SECOND])], least: 2, most: 2 };
    for (let round = 0; round < 12; round += 1) {
      const ms = await waitMs(a, wanted);
      if (ms > 0) {
        await tested.advance(ms - 0.001);
        assert.equal(await waitMs(a, wanted), 0.001);
        await tested.advance(0.001);
        assert.equal(await units(a, wanted), 2);
      }
      await tested.advance(37.5);
      await written(a, 2, "k");
    }
  });

  it('a "wait" reply names the binding budget and its wait', async tested => {
    const a = await tested.member();
    const wantedBoth: LeaseRequest = {
      claims: [claim("role", [1, SECOND]), claim("total", [1, 3 * SECOND])],
      least: 1,
      most: 1,
    };
    assert.equal(await units(a, wantedBoth), 1);
    await written(a, 1, "role", "total");
    await tested.advance(250);
    assert.deepEqual(await ask(a, wantedBoth), { kind: "wait", waitMs: 2750, key: "total", isStricter: false });
  });

  it("the stricter of two claims applies, and the reply to the other process says so", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.deepEqual(await ask(a, one("k", 2)), { kind: "granted", units: 1, isStricter: false });
    assert.equal((await ask(b, one("k", 10))).isStricter, true);
    assert.equal((await ask(b, one("k", 10))).kind, "wait");
    assert.equal((await ask(a, one("k", 2))).isStricter, false);
    // When the lease of the stricter process has ended, only the claim of the other applies.
    await tested.advance(LEASE_MS - 1);
    await returned(b, 1, "k");
    await tested.advance(LEASE_MS - 1);
    assert.deepEqual(await ask(b, { ...one("k", 10), most: 9 }), { kind: "granted", units: 9, isStricter: false });
  });

  it("a request for more units than another process permits delays no other, and waits until that limit ends", async tested => {
    const [strict, heavy] = [await tested.member(), await tested.member()];
    const two: LeaseRequest = { ...one("k", 5), least: 2, most: 2 };
    for (let second = 0; second < 5; second += 1) {
      assert.equal(await units(strict, one("k", 1)), 1);
      await written(strict, 1, "k");
      assert.equal(await units(heavy, two), 0);
      await tested.advance(1000);
      assert.equal(await units(heavy, two), 0);
    }
    await tested.advance(LEASE_MS);
    assert.equal(await units(heavy, two), 2);
  });

  it("processes that all wait get equal shares, whatever their order", async tested => {
    const members = [await tested.member(), await tested.member(), await tested.member()];
    const got = [0, 0, 0];
    for (let ms = 0; ms < 6000; ms += 10) {
      for (const [index, member] of members.entries()) {
        const granted = await units(member, { ...one("k", 6), most: 50 });
        if (granted > 0) await written(member, granted, "k");
        // In the first round the first member was alone and took everything.
        if (ms > 0) got[index] = (got[index] ?? 0) + granted;
      }
      await tested.advance(10);
    }
    const sum = got.reduce((total, each) => total + each, 0);
    assert.ok(Math.max(...got) - Math.min(...got) <= sum / 12, String(got));
    assert.ok(sum >= 6 * 5, `sharing loses no unit: ${sum}`);
  });

  it("two processes that wait for a slow rate take turns", async tested => {
    const members = [await tested.member(), await tested.member()];
    const got = [0, 0];
    for (let ms = 0; ms < 60_000; ms += 10) {
      for (const [index, member] of members.entries()) {
        // The first member always asks first, and both ask only at the time that the reply named.
        if (ms % 3000 > 30) continue;
        const granted = await units(member, one("k", 1, 3 * SECOND));
        if (granted > 0) await written(member, granted, "k");
        got[index] = (got[index] ?? 0) + granted;
      }
      await tested.advance(10);
    }
    assert.ok(Math.min(...got) >= 7, String(got));
  });

  it("with aheadMs a unit is leased before it is free, and the reply says from when it may be used", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.equal(await units(a, one("k", 1)), 1);
    await written(a, 1, "k");
    await tested.advance(700);
    assert.equal((await ask(b, { ...one("k", 1), aheadMs: 299 })).kind, "wait");
    const reply = await ask(b, { ...one("k", 1), aheadMs: 300 });
    assert.deepEqual(reply, { kind: "granted", units: 1, delayMs: 300, isStricter: false });
    assert.equal(
      (await ask(a, { ...one("k", 1), aheadMs: 5000 })).kind,
      "wait",
      "when the unit is written is not known",
    );
  });

  it("a process that no other one disturbs leases the units of the time ahead at once", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const wanted: LeaseRequest = { ...one("k", 10), most: 50, aheadMs: 500 };
    const alone = await ask(a, wanted);
    assert.equal(alone.kind === "granted" && alone.units, 15);
    assert.equal(alone.kind === "granted" && alone.isOnlyUser, true);
    await written(a, 10, "k");
    assert.equal(await units(b, { ...one("k", 10), aheadMs: 500 }), 0);
    await tested.advance(1000);
    // Five units are still leased to the first process, and the second one waits for its turn.
    assert.equal(await units(b, { ...one("k", 10), aheadMs: 500 }), 1);
    const shared = await ask(a, wanted);
    assert.equal(shared.kind === "granted" && shared.units, 4, "no more than the window has");
    assert.equal(shared.kind === "granted" && shared.isOnlyUser, undefined);
  });

  it("processes get free units in the order in which they began to wait, and know when it is their turn", async tested => {
    const members = await Promise.all(Array.from({ length: 4 }, () => tested.member()));
    const [first, ...waiting] = members;
    assert.ok(first !== undefined);
    assert.equal(await units(first, one("k", 1)), 1);
    await written(first, 1, "k");
    const waits: number[] = [];
    for (const member of waiting) waits.push(await waitMs(member, one("k", 1)));
    assert.deepEqual(waits, [1000, 2000, 3000]);
    await tested.advance(1000);
    const granted: number[] = [];
    for (const member of waiting.toReversed()) granted.push(await units(member, one("k", 1)));
    assert.deepEqual(granted, [0, 0, 1]);
  });

  it("a process that asks shortly before its turn gets its unit ahead, and those before it get theirs when they ask", async tested => {
    const [first, b, c] = [await tested.member(), await tested.member(), await tested.member()];
    const [d, e] = [await tested.member(), await tested.member()];
    const soon: LeaseRequest = { ...one("k", 3), aheadMs: 300 };
    assert.equal(await units(first, { ...one("k", 3), most: 3 }), 3);
    await written(first, 3, "k");
    const waits: number[] = [];
    for (const member of [b, c, d, e]) waits.push(await waitMs(member, one("k", 3)));
    assert.deepEqual(waits, [1000, 1000, 1000, 2000]);
    await tested.advance(600);
    assert.equal(await waitMs(d, soon), 400, "its unit is not free within 300 ms");
    await tested.advance(200);
    const delays: (number | undefined)[] = [];
    for (const member of [d, e, c, b]) {
      const reply = await ask(member, soon);
      delays.push(reply.kind === "granted" ? reply.delayMs : undefined);
    }
    assert.deepEqual(delays, [200, undefined, 200, 200]);
  });

  it("a process that does not come for its turn delays the others by a moment", async tested => {
    const [a, b, c] = [await tested.member(), await tested.member(), await tested.member()];
    assert.equal(await units(a, one("k", 1)), 1);
    await written(a, 1, "k");
    assert.equal(await units(b, one("k", 1)), 0);
    await tested.advance(1019);
    assert.equal(await units(c, one("k", 1)), 0);
    await tested.advance(1);
    assert.equal(await units(c, one("k", 1)), 1);
  });

  it("a hundred processes that wait get one unit each before any gets a second one", async tested => {
    const members = await Promise.all(Array.from({ length: 100 }, () => tested.member()));
    const got = members.map(() => 0);
    const nextMs = members.map(() => 0);
    for (let ms = 0; ms < 5000; ms += 50) {
      for (const [index, member] of members.entries()) {
        if ((nextMs[index] ?? 0) > ms) continue;
        const reply = await ask(member, { ...one("k", 20), aheadMs: 50 });
        if (reply.kind === "granted") await written(member, reply.units, "k");
        got[index] = (got[index] ?? 0) + (reply.kind === "granted" ? reply.units : 0);
        nextMs[index] = ms + (reply.kind === "wait" ? reply.waitMs : 0) + 50;
      }
      await tested.advance(50);
    }
    assert.equal(Math.min(...got), 1, String(got));
    assert.ok(got.reduce((sum, each) => sum + each, 0) >= 95, String(got));
  });

  it("a process that its own budget delays does not block others at the total", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const wantedBoth: LeaseRequest = {
      claims: [claim("role", [1, SECOND]), claim("total", [10, SECOND])],
      least: 1,
      most: 1,
    };
    assert.equal(await units(a, wantedBoth), 1);
    assert.equal(await units(a, wantedBoth), 0);
    assert.equal(await units(b, { claims: [claim("total", [10, SECOND])], least: 1, most: 9 }), 9);
  });

  it("units leased by a dead process count as written when its lease ends", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.equal(await units(a, one("k", 1)), 1);
    await tested.advance(LEASE_MS - 1);
    assert.equal(await units(b, one("k", 1)), 0);
    await tested.advance(1);
    assert.equal(await waitMs(b, one("k", 1)), 1000);
    await tested.advance(1000);
    assert.equal(await units(b, one("k", 1)), 1);
    // A late settlement of the dead process changes nothing: its units were counted already.
    await returned(a, 1, "k");
    assert.equal(await units(a, one("k", 1)), 0);
  });

  it("an empty settlement renews the lease of a process", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.equal(await units(a, one("k", 1)), 1);
    for (let third = 0; third < 12; third += 1) {
      await tested.advance(LEASE_MS / 3);
      await a.exchange([{ keys: ["k"], written: 0, returned: 0 }], []);
    }
    assert.equal(await units(b, one("k", 1)), 0);
    await returned(a, 1, "k");
    assert.equal(await units(b, one("k", 1)), 1);
  });

  it("many requests are answered in one exchange, in their order", async tested => {
    const a = await tested.member();
    const replies = await a.exchange(
      [],
      Array.from({ length: 64 }, (_, index) => one(`k${index % 16}`, 3)),
    );
    assert.deepEqual(
      replies.map(({ kind }) => kind),
      Array.from({ length: 64 }, (_, index) => (index < 48 ? "granted" : "wait")),
    );
  });

  it("concurrent exchanges each get their own replies", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, index) => units(index % 2 ? a : b, one(`k${index % 4}`, 7))),
    );
    assert.equal(
      replies.reduce((sum, granted) => sum + granted, 0),
      28,
    );
    assert.deepEqual(await a.exchange([], []), []);
  });

  it("settlements of unknown budgets, or by a process without leased units, change nothing", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    await written(a, 3, "unknown", "k");
    assert.equal(await units(a, { ...one("k", 2), most: 2 }), 2);
    await returned(b, 2, "k", "unknown");
    await returned(a, 9, "k");
    assert.equal(await units(b, { ...one("k", 2), most: 9 }), 2);
  });

  it("a window of 30,000 per hour grants its limit, and renews it in steps of 1/200", async tested => {
    const a = await tested.member();
    const wanted = (most: number): LeaseRequest => ({ claims: [claim("k", [30_000, HOUR])], least: 1, most });
    let sum = 0;
    for (let minute = 0; minute < 30; minute += 1) {
      const granted = await units(a, wanted(1000));
      await written(a, granted, "k");
      sum += granted;
      await tested.advance(60_000);
    }
    assert.equal(sum, 30_000);
    assert.equal(await waitMs(a, wanted(1)), 1_800_000);
    await tested.advance(1_800_000);
    const again = await units(a, wanted(5000));
    assert.ok(again > 1000 - 30_000 / 200 && again <= 1000, String(again));
  });

  it("evenly spaced units are granted one by one", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const wanted: LeaseRequest = { claims: [{ ...claim("k", [10, SECOND]), spacingUs: 125_000 }], least: 1, most: 5 };
    assert.equal(await units(a, wanted), 1);
    await written(a, 1, "k");
    assert.equal(await waitMs(b, wanted), 125);
    await tested.advance(125);
    assert.equal(await units(b, wanted), 1);
  });

  it("each process knows how many share the store, until they leave or their leases end", async tested => {
    const [a, b, c] = [await tested.member(), await tested.member(), await tested.member()];
    const exchangeAll = async (...members: readonly BudgetStore[]) => {
      for (const member of members) await member.exchange([], []);
      await tested.advance(1000);
      for (const member of members) await member.exchange([], []);
    };
    await exchangeAll(a, b, c);
    assert.equal(a.processes, 3);
    await c.close();
    await exchangeAll(a, b);
    assert.equal(b.processes, 2);
    await tested.advance(LEASE_MS);
    await exchangeAll(a);
    assert.equal(a.processes, 1);
  });

  it("a closed store rejects with a StoreError that says so", async tested => {
    const a = await tested.member();
    await a.close();
    await assert.rejects(a.exchange([], [one("k", 1)]), { name: "StoreError", message: /closed/ });
    await a.close();
  });

  it("no window of any budget ever holds more than its limit, counted independently", async tested => {
    const step = fc.record({
      member: fc.nat({ max: 2 }),
      kind: fc.constantFrom("ask", "ask", "ask", "write", "write", "return"),
      role: fc.constantFrom("x", "y"),
      units: fc.integer({ min: 1, max: 3 }),
      afterMs: fc.nat({ max: 600 }),
    });
    const members = [await tested.member(), await tested.member(), await tested.member()];
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
        run += 1;
        const total = claim(`total ${run}`, [6, 2 * SECOND]);
        const roles = { x: claim(`x ${run}`, [3, SECOND], [5, 3 * SECOND]), y: claim(`y ${run}`, [4, SECOND]) };
        const held = new Map<string, number>();
        const stamps = new Map<string, number[]>([total, roles.x, roles.y].map(({ key }) => [key, []]));
        let nowMs = 0;
        for (const { member, kind, role, units: count, afterMs } of steps) {
          await tested.advance(afterMs);
          nowMs += afterMs;
          const store = members[member] as BudgetStore;
          const claims = [roles[role], total];
          const keys = claims.map(({ key }) => key);
          const holder = `${member} ${role}`;
          const mine = held.get(holder) ?? 0;
          const some = Math.min(count, mine);
          if (kind === "ask") {
            held.set(holder, mine + (await units(store, { claims, least: count, most: count + 1 })));
            continue;
          }
          if (kind === "write")
            for (const key of keys) stamps.get(key)?.push(...Array<number>(some).fill(nowMs * 1000));
          await (kind === "write" ? written : returned)(store, some, ...keys);
          held.set(holder, mine - some);
        }
        for (const { key, windows } of [total, roles.x, roles.y]) {
          for (const { limit, windowUs } of windows) assertWithin(stamps.get(key) ?? [], limit, windowUs);
        }
        for (const [holder, left] of held) {
          const [member, role] = holder.split(" ") as [string, "x" | "y"];
          await returned(members[Number(member)] as BudgetStore, left, roles[role].key, total.key);
        }
      }),
      { numRuns: 60 },
    );
  });
}

/** Asserts at most `limit` stamps in any half-open interval of `windowUs`. */
export function assertWithin(stampsUs: readonly number[], limit: number, windowUs: number): void {
  const sorted = [...stampsUs].sort((a, b) => a - b);
  for (const [index, us] of sorted.entries()) {
    const next = sorted[index + limit];
    if (next !== undefined) assert.ok(next - us >= windowUs, `${limit + 1} within ${next - us} us`);
  }
}
