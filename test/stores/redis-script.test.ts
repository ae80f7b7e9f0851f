/** The shared budget is implemented in TypeScript and in Lua. Both must give the same replies to random traces. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createClient } from "@redis/client";
import fc from "fast-check";
import { SharedBudget } from "../../src/core/limits/shared-budget.ts";
import { type Budgets, leaseAll, settleAll } from "../../src/stores/exchange.ts";
import { RedisBatch, requestKeyOf } from "../../src/stores/redis/redis-batch.ts";
import { RedisLedger } from "../../src/stores/redis/redis-ledger.ts";
import { SCRIPT } from "../../src/stores/redis/redis-script.ts";
import { leaseRepliesOf, readReply, scriptCallOf } from "../../src/stores/redis/script-call.ts";
import type { LeaseReply, LeaseRequest, Settlement, StoreClaim } from "../../src/stores/store.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";

const SECOND = 1_000_000;
const LEASE = 5 * SECOND;
const PROCESSES = ["a", "b", "c", "d"] as const;

class PlainBudgets implements Budgets {
  readonly #budgets = new Map<string, SharedBudget>();

  find(key: string): SharedBudget | undefined {
    return this.#budgets.get(key);
  }

  open(key: string): SharedBudget {
    const budget = this.#budgets.get(key) ?? new SharedBudget();
    this.#budgets.set(key, budget);
    return budget;
  }
}

const KEY_CHAINS = [["x"], ["x", "total"], ["y", "total"], ["total"]];

interface TraceShape {
  readonly limit: fc.Arbitrary<number>;
  readonly afterUs: fc.Arbitrary<number>;
  readonly chain: fc.Arbitrary<readonly string[]>;
}

/** A wide range of limits and delays. */
const mixed: TraceShape = {
  limit: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 60 }), fc.integer({ min: 180, max: 900 })),
  afterUs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 30_000 }),
    fc.integer({ min: 0, max: 900_000 }),
    fc.integer({ min: 0, max: 7 * SECOND }),
  ),
  chain: fc.constantFrom(...KEY_CHAINS),
};

/** Several processes compete for few units of one budget, so that the order of waiting processes decides. */
const crowded: TraceShape = {
  limit: fc.integer({ min: 1, max: 6 }),
  afterUs: fc.oneof(fc.constantFrom(0, 1000, 19_999, 20_000), fc.integer({ min: 0, max: 2_200_000 })),
  chain: fc.constantFrom(["x"], ["x"], ["x", "total"]),
};

function claimsAt({ limit }: TraceShape) {
  const rate = fc.record({
    limit,
    windowUs: fc.constantFrom(SECOND, 3 * SECOND, 20 * SECOND),
    stretch: fc.constantFrom(1, 1, 1.25),
  });
  return fc
    .record({
      rates: fc.uniqueArray(rate, { minLength: 1, maxLength: 3, selector: ({ windowUs }) => windowUs }),
      spacingUs: fc.constantFrom(0, 0, 0, 0, 130_000),
    })
    .map(({ rates, spacingUs }) => ({
      windows: rates.map(({ limit: most, windowUs, stretch }) => ({
        limit: most,
        windowUs,
        spanUs: windowUs * stretch,
      })),
      spacingUs,
    }));
}

function stepAt({ afterUs, chain }: TraceShape) {
  const wanted = fc.record({
    chain,
    least: fc.constantFrom(1, 1, 1, 2, 5),
    more: fc.constantFrom(0, 0, 1, 7, 300),
    aheadMs: fc.constantFrom(0, 0, 1, 250, 900),
  });
  return fc.record({
    process: fc.constantFrom(...PROCESSES),
    afterUs,
    writtenParts: fc.constantFrom(0, 0.5, 1, 1),
    returnedParts: fc.constantFrom(0, 0, 0.5, 1),
    asks: fc.array(wanted, { maxLength: 3 }),
    policy: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
  });
}

describe("the script", { skip: whyNoRedis() }, () => {
  let server: RedisServer;
  const client = createClient({ socket: { port: 1 } });
  let redis = client;
  let runs = 0;

  before(async () => {
    server = await RedisServer.start();
    redis = createClient({ url: server.url, RESP: 3 });
    await redis.connect();
  });
  after(async () => {
    redis.destroy();
    await server.stop();
  });

  async function inLua(
    process: string,
    nowUs: number,
    settlements: readonly Settlement[],
    asks: readonly LeaseRequest[],
  ): Promise<readonly LeaseReply[]> {
    const batch = new RedisBatch();
    const answers: LeaseReply[] = [];
    for (const settlement of settlements) batch.settle(settlement);
    // Each request gets a key of its own, so that the batch does not merge equal requests.
    for (const [index, ask] of asks.entries()) {
      batch.request(`${index} ${requestKeyOf(ask)}`, ask, answer => {
        answers[index] = answer;
      });
    }
    const caller = { process, leaseUs: LEASE, notAfterUs: 0, timeUs: nowUs };
    const { keys, args } = scriptCallOf(batch, new RedisLedger(), caller, key => `run${runs}:${key}`);
    const { rest = [] } = readReply(await redis.eval(SCRIPT, { keys: [...keys], arguments: [...args] }));
    return leaseRepliesOf(batch, rest).flat();
  }

  async function assertSame(pace: TraceShape, numRuns: number, seed?: number): Promise<void> {
    const claims = claimsAt(pace);
    const two = fc.tuple(claims, claims);
    await fc.assert(
      fc.asyncProperty(
        fc.array(stepAt(pace), { minLength: 1, maxLength: 80 }),
        fc.record({ x: two, y: two, total: two }),
        async (steps, policies) => {
          runs += 1;
          const budgets = new PlainBudgets();
          const held = new Map<string, number>();
          let nowUs = 1_700_000_000_000_000;
          for (const { process, afterUs, writtenParts, returnedParts, asks, policy } of steps) {
            nowUs += afterUs;
            const settlements: Settlement[] = [];
            for (const chain of KEY_CHAINS) {
              const holder = `${process} ${chain}`;
              const leased = held.get(holder) ?? 0;
              const written = Math.ceil(leased * writtenParts);
              const returned = Math.floor((leased - written) * returnedParts);
              if (leased === 0) continue;
              settlements.push({ keys: chain, written, returned });
              held.set(holder, leased - written - returned);
            }
            const questions = asks.map(
              ({ chain, least, more, aheadMs }): LeaseRequest => ({
                aheadMs,
                claims: chain.map((key): StoreClaim => ({ key, ...policies[key as "x"][policy as 0] })),
                least,
                most: least + more,
              }),
            );
            const context = { process, nowUs, leaseUs: LEASE };
            settleAll(budgets, settlements, context);
            const expected = leaseAll(budgets, questions, context);
            assert.deepEqual(await inLua(process, nowUs, settlements, questions), expected);
            for (const [index, { chain }] of asks.entries()) {
              const answer = expected[index];
              const holder = `${process} ${chain}`;
              if (answer?.kind === "granted") held.set(holder, (held.get(holder) ?? 0) + answer.units);
            }
          }
        },
      ),
      { numRuns, ...(seed !== undefined && { seed }) },
    );
  }

  test("the script and SharedBudget give the same replies when processes join, die, return or change their claims", () =>
    assertSame(mixed, 400));

  test("the script and SharedBudget agree when a process returns more units than it has", () =>
    assertSame(mixed, 120, 1423263538));

  test("the script and SharedBudget agree which waiting process comes next", () => assertSame(crowded, 400));

  test("a call that arrives after its timeout has no effect", async () => {
    const batch = new RedisBatch();
    const ask: LeaseRequest = { claims: [{ key: "late", windows: [], spacingUs: 0 }], least: 1, most: 1 };
    batch.request("late", ask, () => undefined);
    const caller = { process: "a", leaseUs: LEASE, notAfterUs: 1 };
    const { keys, args } = scriptCallOf(batch, new RedisLedger(), caller, key => key);
    const reply = readReply(await redis.eval(SCRIPT, { keys: [...keys], arguments: [...args] }));
    assert.equal(reply.rest, undefined);
    assert.equal(await redis.exists("late"), 0);
  });

  test("a clock that is set back makes waits longer and grants nothing early", async () => {
    runs += 1;
    const windows = [{ limit: 2, windowUs: SECOND, spanUs: SECOND }];
    const ask: LeaseRequest = { claims: [{ key: "x", windows, spacingUs: 0 }], least: 1, most: 2 };
    const nowUs = 1_700_000_000_000_000;
    assert.deepEqual(await inLua("a", nowUs, [], [ask]), [{ kind: "granted", units: 2, isStricter: false }]);
    const settled: Settlement = { keys: ["x"], written: 2, returned: 0 };
    const wait = { kind: "wait", key: "x", isStricter: false };
    assert.deepEqual(await inLua("a", nowUs - 3600 * SECOND, [settled], [ask]), [{ ...wait, waitMs: 1000 }]);
    assert.deepEqual(await inLua("a", nowUs - 3599.6 * SECOND, [], [ask]), [{ ...wait, waitMs: 600 }]);
    assert.equal((await inLua("a", nowUs - 3599 * SECOND, [], [ask]))[0]?.kind, "granted");
  });

  test("every key expires when it can delay no request", async () => {
    await redis.flushAll();
    runs += 1;
    const windows = [{ limit: 2, windowUs: SECOND, spanUs: SECOND }];
    const ask: LeaseRequest = { claims: [{ key: "x", windows, spacingUs: 0 }], least: 1, most: 1 };
    await inLua("a", 1_700_000_000_000_000, [], [ask]);
    const keys = await redis.keys("*");
    assert.equal(keys.length, 1);
    for (const key of keys) {
      const ttlMs = await redis.pTTL(key);
      assert.ok(ttlMs > (LEASE + SECOND) / 1000 && ttlMs <= (2 * (LEASE + 2 * SECOND)) / 1000, String(ttlMs));
    }
  });
});
