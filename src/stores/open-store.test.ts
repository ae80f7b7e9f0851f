import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../errors.ts";
import { loadPolicy } from "../policy/load.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { breakerStoreFor, type StoreName, sharedStoreName, storeFor } from "./open-store.ts";

const storeDeps = async (overrides: object = {}) => ({
  policy: await loadPolicy({ env: {}, ...overrides }),
  env: {},
  time: new FakeTime(),
  random: () => 0,
});

test("no store is opened unless the call or the policy names one", async () => {
  assert.equal(storeFor(undefined, await storeDeps()), undefined);
  assert.equal(storeFor("memory", await storeDeps()), undefined);
  assert.equal(sharedStoreName(undefined, await storeDeps()), "memory");
  assert.notEqual(storeFor("sqlite:/nowhere/x.db", await storeDeps()), undefined);
});

test("an invalid store name is a ConfigError that does not repeat the password", async () => {
  for (const [name, expected] of [
    ["postgres://u:secret@a.example", /expected "memory", "multiprocess", "sqlite:<file>" or "redis:/],
    ["redis://u:secret@a.example?clustr=true", /unknown Redis parameter "clustr", expected "cluster" or "prefix"/],
    ["redis://u:secret@a.example?cluster=yes", /expected cluster=true or cluster=false, got cluster=yes/],
    ["redis://u:secret@", /invalid Redis address, expected redis:/],
  ] as const) {
    const broken = storeDeps().then(deps => storeFor(name as StoreName, deps));
    await assert.rejects(broken, (error: Error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
  assert.notEqual(storeFor("redis://a.example/0?cluster=true&prefix=mine", await storeDeps()), undefined);
});

test("cooldown_store shares breakers when limits are not shared", async () => {
  const breakers = { advanced: { cooldown_store: { backend: "sqlite", dsn: "/nowhere/x.db" } } } as const;
  const deps = await storeDeps({ breakers });
  assert.notEqual(breakerStoreFor(deps), undefined);
  assert.equal(storeFor(undefined, deps), undefined);
  const without = storeDeps({ breakers: { advanced: { cooldown_store: { backend: "redis" } } } });
  await assert.rejects(
    without.then(breakerStoreFor),
    /advanced\.cooldown_store\.dsn: backend redis needs a dsn: redis:/,
  );
});
