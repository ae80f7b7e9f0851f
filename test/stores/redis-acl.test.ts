/** The rights that docs/guides/stores.md lists are enough for everything that a store does. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { aclOf } from "./documented-acl.ts";
import { recordContract } from "./record-contract.ts";
import { startCluster } from "./redis-cluster-servers.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { kindOf, one } from "./requests.ts";
import { storeContract, type TestedStore } from "./store-contract.ts";

const PATIENT_MS = 600_000;

function logIn(url: string): string {
  return url.replace("://", "://docstokg:s3cret@");
}

async function addUser(server: RedisServer): Promise<void> {
  const rights = (await aclOf("server")).replace("<password>", "s3cret");
  assert.equal(server.cli("acl", "setuser", ...rights.split(" ")), "OK");
}

describe("a user with the documented rights", { skip: whyNoRedis() }, () => {
  let server: RedisServer;
  let stores = 0;

  before(async () => {
    server = await RedisServer.start();
    await addUser(server);
  });
  after(() => server.stop());

  async function tested(t: TestContext): Promise<TestedStore> {
    const time = new FakeTime();
    stores += 1;
    const prefix = `docstokg-${stores}`;
    return {
      member: async () => {
        const options = { prefix, time, trustMs: 0, timeoutMs: PATIENT_MS, serverUs: () => time.machineUs() };
        const store = await RedisStore.open(logIn(server.url), options);
        t.after(() => store.close());
        return store;
      },
      advance: ms => time.advance(ms),
    };
  }
  storeContract("restricted user", tested);
  recordContract("restricted user", tested);

  test("keys of other programs are refused, and the error names the guide", async () => {
    await assert.rejects(
      RedisStore.open(`${logIn(server.url)}?prefix=other`, { timeoutMs: PATIENT_MS }),
      /NOPERM .*\(docs\/guides\/stores\.md lists the commands and keys that the user must be allowed to use\)/,
    );
  });
});

test("a user with the documented rights can use a cluster", { skip: whyNoRedis() }, async t => {
  const cluster = await startCluster();
  t.after(() => cluster[Symbol.asyncDispose]());
  await Promise.all(cluster.primaries.map(addUser));
  const store = await RedisStore.open(logIn(cluster.url), { trustMs: 0, timeoutMs: PATIENT_MS });
  t.after(() => store.close());
  for (const key of ["a", "b", "c", "d"]) assert.equal(await kindOf(store, one(key, 1)), "granted");
});
