/** A Redis cluster. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, describe, type TestContext, test } from "node:test";
import { queryObjects } from "node:v8";
import { RedisCallQueue } from "../../src/stores/redis/redis-call-queue.ts";
import { RedisKeys } from "../../src/stores/redis/redis-keys.ts";
import { slotOfKey } from "../../src/stores/redis/redis-slot.ts";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { eventually } from "./eventually.ts";
import { recordContract } from "./record-contract.ts";
import { type RedisClusterServers, startCluster } from "./redis-cluster-servers.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { kindOf, one } from "./requests.ts";
import { storeContract, type TestedStore } from "./store-contract.ts";

const PATIENT_MS = 600_000;

describe("a cluster of three servers", { skip: whyNoRedis() }, () => {
  let cluster: RedisClusterServers;
  let stores = 0;

  before(async () => {
    cluster = await startCluster({ hasReplicas: true });
  });
  after(() => cluster[Symbol.asyncDispose]());

  async function tested(t: TestContext): Promise<TestedStore> {
    const time = new FakeTime();
    stores += 1;
    const prefix = `test${stores}`;
    const serverUs = () => time.machineUs();
    return {
      member: async () => {
        const store = await RedisStore.open(cluster.url, {
          prefix,
          time,
          trustMs: 0,
          timeoutMs: 600_000,
          serverUs,
        });
        t.after(() => store.close());
        return store;
      },
      advance: ms => time.advance(ms),
    };
  }
  storeContract("cluster", tested);
  recordContract("cluster", tested);

  test("the slot of a key is the one that the servers compute", () => {
    const [server] = cluster.primaries;
    for (const key of ["k", "docstokg{a.org}:lane a.org metadata", "{}x", "a{b", "a{}{b}", "é{ü}", "{{a}}", ""])
      assert.equal(String(slotOfKey(key)), server?.cli("cluster", "keyslot", key), key);
  });

  test("a slot that moves to another node is followed", async t => {
    const store = await RedisStore.open(cluster.url, { prefix: "moved", trustMs: 0, timeoutMs: PATIENT_MS });
    t.after(() => store.close());
    const key = new RedisKeys("moved", true).keyOf("k", "k");
    const slot = String(slotOfKey(key));
    const owner = cluster.primaries[[5460, 10_922, 16_383].findIndex(last => Number(slot) <= last)];
    const target = cluster.primaries.find(server => server !== owner);
    assert.ok(owner !== undefined && target !== undefined);
    const [ownerId, targetId] = [owner.cli("cluster", "myid"), target.cli("cluster", "myid")];
    const before = await kindOf(store, one("k", 2, 3_600_000));
    target.cli("cluster", "setslot", slot, "importing", ownerId);
    owner.cli("cluster", "setslot", slot, "migrating", targetId);
    owner.cli("migrate", "127.0.0.1", String(target.port), key, "0", "5000");
    const during = await kindOf(store, one("k", 2, 3_600_000));
    for (const server of [target, owner]) server.cli("cluster", "setslot", slot, "node", targetId);
    const after = await kindOf(store, one("k", 2, 3_600_000));
    assert.deepEqual([before, during, after], ["granted", "granted", "wait"]);
  });

  test("a queue is kept for a bounded number of hosts, also after thousands of hosts were called once", async t => {
    const store = await RedisStore.open(cluster.url, { prefix: "hosts", timeoutMs: PATIENT_MS });
    t.after(() => store.close());
    const queues = () => queryObjects(RedisCallQueue, { format: "count" }) as unknown as number;
    const ofOtherStores = queues();
    for (let first = 0; first < 2000; first += 50) {
      const hosts = Array.from({ length: 50 }, (_, index) => `host-${first + index}.example`);
      const replies = await store.exchange(
        [],
        hosts.map(host => one(`lane ${host} metadata`, 2)),
      );
      assert.ok(replies.every(({ kind }) => kind === "granted"));
    }
    const kept = queues() - ofOtherStores;
    assert.ok(kept <= 1200, `${kept} queues`);
  });

  test("a program with a store in a cluster ends although it does not close the store", () => {
    const code = `
      const { RedisStore } = await import(${JSON.stringify(import.meta.resolve("../../src/stores/redis/redis-store.ts"))});
      const store = await RedisStore.open(${JSON.stringify(cluster.url)}, { timeoutMs: ${PATIENT_MS} });
      await store.exchange([], []);
      console.log("used");`;
    const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
      encoding: "utf8",
      timeout: PATIENT_MS,
    });
    assert.deepEqual([stdout.trim(), status], ["used", 0]);
  });

  test("a store opens while one named node is down, and continues after the loss of a primary", async t => {
    const unused = await RedisServer.freePort();
    const url = cluster.url.replace("redis://", `redis://127.0.0.1:${unused},`);
    const store = await RedisStore.open(url, { prefix: "failover", trustMs: 0, timeoutMs: PATIENT_MS });
    t.after(() => store.close());
    const keys = Array.from({ length: 12 }, (_, n) => `key${n}`);
    for (const key of keys) assert.equal(await kindOf(store, one(key, 1, 3_600_000)), "granted");
    await cluster.primaries[0]?.stop();
    // Units that this process has leased are reported to the promoted replica, so none of them is granted again.
    for (const key of keys) await eventually(async () => assert.equal(await kindOf(store, one(key, 1)), "wait"));
  });

  test("cluster=true on a server without a cluster, and the reverse, are errors with a remedy", async t => {
    const plain = await RedisServer.start();
    t.after(() => plain.stop());
    await assert.rejects(
      RedisStore.open(`${plain.url}?cluster=true`, { timeoutMs: PATIENT_MS }),
      /cluster support disabled \(remove cluster=true/,
    );
    const node = cluster.primaries[1]?.url ?? "";
    const other = await RedisStore.open(node, { timeoutMs: PATIENT_MS }).catch((error: Error) => error);
    const error =
      other instanceof Error ? other : await other.exchange([], [one("x", 1), one("y", 1), one("z", 1)]).catch(e => e);
    assert.match(String(error), /MOVED .*\(the server belongs to a cluster: add \?cluster=true to the URL\)/);
  });
});
