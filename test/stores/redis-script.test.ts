/** The shared budget is implemented in TypeScript and in Lua. Both must give the same replies to random traces. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createClient } from "@redis/client";
import { RedisBatch, requestKeyOf } from "../../src/stores/redis/redis-batch.ts";
import { RedisLedger } from "../../src/stores/redis/redis-ledger.ts";
import { SCRIPT } from "../../src/stores/redis/redis-script.ts";
import { leaseRepliesOf, readReply, scriptCallOf } from "../../src/stores/redis/script-call.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../../src/stores/store.ts";
import { assertSame, crowded, LEASE, mixed, reporting, SECOND, type TracedExchange } from "./budget-traces.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";

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
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): Promise<readonly LeaseReply[]> {
    const batch = new RedisBatch();
    const answers: LeaseReply[] = [];
    for (const settlement of settlements) batch.settle(settlement);
    for (const report of reports) batch.report(report);
    // Each request gets a key of its own, so that the batch does not merge equal requests.
    for (const [index, ask] of asks.entries()) {
      batch.request(`${index} ${requestKeyOf(ask)}`, ask, answer => {
        answers[index] = answer;
      });
    }
    const keyOf = (key: string) => `run${runs}:${key}`;
    const caller = { process, leaseUs: LEASE, notAfterUs: 0, timeUs: nowUs, keyOf, dead };
    const { keys, args } = scriptCallOf(batch, new RedisLedger(), caller);
    const { rest = [] } = readReply(await redis.eval(SCRIPT, { keys: [...keys], arguments: [...args] }));
    return leaseRepliesOf(batch, rest).flat();
  }

  const begin = (): TracedExchange => {
    runs += 1;
    return inLua;
  };

  test("the script and SharedBudget give the same replies when processes join, are reported dead, return or change their claims", () =>
    assertSame(begin, mixed, 400));

  test("the script and SharedBudget agree when a process returns more units than it has", () =>
    assertSame(begin, mixed, 120, 1423263538));

  test("the script and SharedBudget agree which waiting process comes next", () => assertSame(begin, crowded, 400));

  test("the script and SharedBudget count the same after reports of what was sent without the store", () =>
    assertSame(begin, reporting, 300));

  test("a call that arrives after its timeout has no effect", async () => {
    const batch = new RedisBatch();
    const ask: LeaseRequest = { claims: [{ key: "late", windows: [], spacingUs: 0 }], least: 1, most: 1 };
    batch.request("late", ask, () => undefined);
    const caller = { process: "a", leaseUs: LEASE, notAfterUs: 1, keyOf: (key: string) => key };
    const { keys, args } = scriptCallOf(batch, new RedisLedger(), caller);
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

  test("a clock that is set back does not make a budget look lost", async () => {
    runs += 1;
    const windows = [{ limit: 9, windowUs: SECOND, spanUs: SECOND }];
    const ask = (knownAgoUs?: number): LeaseRequest => ({
      claims: [{ key: "x", windows, spacingUs: 0, knownAgoUs }],
      ...{ least: 1, most: 1 },
    });
    const granted = [{ kind: "granted", units: 1, isStricter: false }];
    const nowUs = 1_700_000_000_000_000;
    assert.deepEqual(await inLua("a", nowUs, [], [ask()]), granted);
    assert.deepEqual(await inLua("a", nowUs - 2 * SECOND, [], [ask(0.3 * SECOND)]), granted);
    assert.deepEqual(await inLua("a", nowUs - SECOND, [], [ask(1.3 * SECOND)]), granted);
    // Nothing is known about a process that has not asked for longer than a lease.
    const lost = { kind: "wait", waitMs: 0.001, key: "x", isStricter: false, isLost: true };
    assert.deepEqual(await inLua("a", nowUs - SECOND, [], [ask(LEASE + 2 * SECOND)]), [lost]);
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
