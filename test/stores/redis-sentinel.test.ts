/** A Redis server that sentinels monitor. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { StoreError } from "../../src/errors.ts";
import { createHub } from "../../src/index.ts";
import { RedisKeys } from "../../src/stores/redis/redis-keys.ts";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { startStrictServer } from "../../src/testing/strict-server.ts";
import { aclOf } from "./documented-acl.ts";
import { eventually } from "./eventually.ts";
import { RedisSentinelSet } from "./redis-sentinel-set.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { kindOf, one } from "./requests.ts";

const HOUR_MS = 3_600_000;
const PATIENT_MS = 600_000;

describe("sentinels", { skip: whyNoRedis() }, () => {
  let set: RedisSentinelSet;
  before(async () => {
    set = await RedisSentinelSet.start();
  });
  after(() => set[Symbol.asyncDispose]());

  test("opening a store fails for a name that the sentinels do not monitor", async () => {
    await assert.rejects(RedisStore.open(set.url.replace("/limits", "/limit"), { timeoutMs: PATIENT_MS }), {
      name: "StoreError",
      message: /^redis at 127\.0\.0\.1:.*\/limit: the sentinels monitor no server with the name "limit"$/,
    });
  });

  test("a URL of a sentinel without its scheme is an error with a remedy", async () => {
    await assert.rejects(
      RedisStore.open(set.sentinels[0]?.url ?? "", { timeoutMs: PATIENT_MS }),
      /unknown command .* \(a sentinel needs a URL that begins with redis\+sentinel:/,
    );
  });

  test("a store opens while one sentinel is down, and uses the database number", async t => {
    const url = set.url.replace("://", `://127.0.0.1:${await RedisServer.freePort()},`);
    const store = await RedisStore.open(`${url}/3`, { trustMs: 0, timeoutMs: PATIENT_MS });
    t.after(() => store.close());
    assert.equal(await kindOf(store, one("k", 1)), "granted");
    assert.equal(set.primary.cli("-n", "3", "exists", new RedisKeys("docstokg", false).keyOf("k", "")), "1");
  });

  test("after a failover on request a store uses the new primary, also if the old one still answers", async t => {
    const store = await RedisStore.open(set.url, { prefix: "asked", trustMs: 0, timeoutMs: PATIENT_MS });
    t.after(() => store.close());
    assert.equal(await kindOf(store, one("k", 2, HOUR_MS)), "granted");
    const old = set.primary;
    await set.isComplete();
    set.sentinels[1]?.cli("sentinel", "failover", "limits");
    await set.failedOver(old);
    await eventually(async () => {
      await kindOf(store, one("new", 1, HOUR_MS));
      if (set.primary.cli("exists", new RedisKeys("asked", false).keyOf("new", "")) === "0")
        throw new StoreError("the old primary has answered");
    });
    assert.equal(await kindOf(store, one("k", 1, HOUR_MS)), "wait", "the leased unit is known to the new primary");
  });

  test("after an outage of all sentinels a store listens to one of them again", async t => {
    const store = await RedisStore.open(set.url, { prefix: "watch", trustMs: 0, timeoutMs: PATIENT_MS });
    t.after(() => store.close());
    const listeners = () =>
      set.sentinels
        .flatMap(sentinel => sentinel.cli("client", "list").split("\n"))
        .filter(line => line.includes(" sub=1 ")).length;
    assert.equal(listeners(), 1);
    await Promise.all(set.sentinels.map(sentinel => sentinel.stop()));
    assert.equal(await kindOf(store, one("k", 1, HOUR_MS)), "granted", "the primary is used without sentinels");
    await Promise.all(set.sentinels.map(sentinel => sentinel.start()));
    await eventually(async () => {
      if (listeners() !== 1) throw new StoreError("no connection to a sentinel");
    });
    await set.isComplete();
  });

  test("a hub continues when its primary is killed and the sentinels promote the replica", async t => {
    await set.isComplete();
    const server = await startStrictServer({ rate: "1000/SECOND" });
    t.after(() => server.close());
    const policy = {
      ratelimits: { hosts: { "127.0.0.1": { metadata: { rates: "500/SECOND", max_delay_ms: PATIENT_MS } } } },
    };
    const hub = await createHub({
      policy,
      cache: false,
      retry: false,
      store: `${set.url}?prefix=hub&timeoutMs=600000` as `redis+sentinel://${string}`,
    });
    t.after(() => hub.close());
    const status = async (path: string) => (await hub.fetch(server.origin + path)).status;
    assert.equal(await status("/before"), 200);
    const old = set.primary;
    await old.stop();
    assert.equal(await status("/during"), 200);
    await set.failedOver(old);
    // The hub reads the store again by itself; its keys then appear on the promoted server.
    for (let n = 0; !set.primary.cli("keys", "hub:*").includes("lane"); n += 1)
      assert.equal(await status(`/${n}`), 200);
    assert.equal(await status("/after"), 200);
    await set.rejoin(old);
  });
});

test("log-in names of sentinels and servers are separate, and the documented rights are enough", {
  skip: whyNoRedis(),
}, async t => {
  const set = await RedisSentinelSet.start({
    serverArgs: ["--user", ...(await aclOf("server")).replace("<password>", "s3rver").split(" ")],
    sentinelSettings: [`user ${(await aclOf("sentinel")).replace("<password>", "s3ntinel")}`],
  });
  t.after(() => set[Symbol.asyncDispose]());
  const url = `${set.url.replace("://", "://docstokg:s3rver@")}?sentinelUser=docstokg&sentinelPassword=s3ntinel`;
  const store = await RedisStore.open(url, { trustMs: 0, timeoutMs: PATIENT_MS });
  t.after(() => store.close());
  assert.equal(await kindOf(store, one("k", 1)), "granted");
  for (const wrong of [url.replace("s3rver", "wr0ng"), url.replace("s3ntinel", "wr0ng")])
    await assert.rejects(RedisStore.open(wrong, { timeoutMs: PATIENT_MS }), error => {
      assert.match(
        String(error),
        /StoreError: redis at .*: WRONGPASS .*\(check the user name and password of the URL\)/,
      );
      assert.doesNotMatch(String(error), /wr0ng|s3/);
      return true;
    });
});
