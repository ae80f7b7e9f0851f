import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../errors.ts";
import { loadPolicy } from "../policy/load.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { breakerStoreFor, type StoreName, sharedStoreName, storeFor } from "./open-store.ts";

const room = async (overrides: object = {}) => ({
  policy: await loadPolicy({ env: {}, ...overrides }),
  env: {},
  time: new FakeTime(),
  random: () => 0,
});

test("nothing is shared unless somebody says where", async () => {
  assert.equal(storeFor(undefined, await room()), undefined);
  assert.equal(storeFor("memory", await room()), undefined);
  assert.equal(sharedStoreName(undefined, await room()), "memory");
  assert.notEqual(storeFor("sqlite:/nowhere/x.db", await room()), undefined);
});

test("what is no store is a clear error, that does not repeat a password", async () => {
  for (const [name, expected] of [
    ["postgres://u:secret@a.example", /expected "memory", "multiprocess", "sqlite:<file>" or "redis:/],
    ["redis://u:secret@a.example?clustr=true", /"clustr" is no parameter of redis; there are cluster and prefix/],
    ["redis://u:secret@a.example?cluster=yes", /cluster is true or false/],
    ["redis://u:secret@", /expected an address such as redis:/],
  ] as const) {
    const broken = room().then(given => storeFor(name as StoreName, given));
    await assert.rejects(broken, (error: Error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
  assert.notEqual(storeFor("redis://a.example/0?cluster=true&prefix=mine", await room()), undefined);
});

test("breakers may be shared where limits are not, if the policy says where", async () => {
  const breakers = { advanced: { cooldown_store: { backend: "sqlite", dsn: "/nowhere/x.db" } } } as const;
  const given = await room({ breakers });
  assert.notEqual(breakerStoreFor(given), undefined);
  assert.equal(storeFor(undefined, given), undefined);
  const without = room({ breakers: { advanced: { cooldown_store: { backend: "redis" } } } });
  await assert.rejects(without.then(breakerStoreFor), /advanced\.cooldown_store\.dsn: redis needs a dsn: redis:/);
});
