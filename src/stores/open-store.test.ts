import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/cli/kit.ts";
import { damagedDatabase } from "../../test/stores/damaged-file.ts";
import { ConfigError } from "../errors.ts";
import { loadPolicy } from "../policy/load.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { breakerStoreFor, lazySqliteStore, type StoreName, sharedStoreName, storeFor } from "./open-store.ts";
import { STORE_FORMAT } from "./sqlite/sqlite-connection.ts";

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
    ["postgres://u:secret@a.example", /the address of the PostgreSQL store: expected postgres:\/\/user@host/],
    [
      "mysql://u:secret@a.example",
      /expected "memory", "multiprocess", "sqlite:<file>", "redis:\/\/…", "redis\+sentinel:.*" or "postgres:/,
    ],
    [
      "redis://u:secret@a.example?clustr=true",
      /unknown Redis parameter "clustr", expected "prefix", "timeoutMs", "cluster"/,
    ],
    ["redis://u:secret@a.example?cluster=yes", /expected cluster=true or cluster=false, not cluster=yes/],
    ["redis://u:secret@", /invalid Redis URL: a host is missing/],
    ["redis+sentinel://u:secret@a,b,c", /the name that the sentinels monitor is missing/],
  ] as const) {
    const broken = storeDeps().then(deps => storeFor(name as StoreName, deps));
    await assert.rejects(broken, (error: Error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
  for (const name of ["redis://a.example/0?cluster=true&prefix=mine", "rediss+sentinel://a,b/limits"] as const)
    assert.notEqual(storeFor(name, await storeDeps()), undefined);
});

test("the dsn of the policy must fit its kind", async () => {
  for (const [backend, expected] of [
    [{ kind: "redis", dsn: "memory" }, /backend\.dsn: "memory" is not a dsn of backend redis; expected redis:\/\/host/],
    [{ kind: "redis", dsn: "sqlite:x" }, /backend\.dsn: "sqlite:x" is not a dsn of backend redis/],
    [{ kind: "redis", dsn: "" }, /backend\.dsn: backend redis needs a dsn: redis:\/\/host/],
    [
      { kind: "sqlite", dsn: "redis://u:secret@a.example" },
      /backend\.dsn: "redis:\/\/…@a\.example" is not a dsn of backend sqlite; expected the path of the file/,
    ],
  ] as const) {
    await assert.rejects(
      storeDeps({ ratelimits: { backend } }).then(deps => storeFor(undefined, deps)),
      expected,
    );
  }
});

test("a damaged file of a shared store is reported by a process warning", async t => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "shared.db");
  await writeFile(file, damagedDatabase(STORE_FORMAT.applicationId));
  const warned = once(process, "warning");
  const store = lazySqliteStore(file, systemTime);
  t.after(() => store.close());
  await store.read("x");
  const [{ name, message }] = await warned;
  assert.equal(name, "DocstokgWarning");
  assert.match(message, /shared\.db was damaged or not a SQLite database: it was renamed to .*, a new file is used/);
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
  const invalid = { backend: "redis", dsn: "redis://h:99999999/0" } as const;
  await assert.rejects(
    storeDeps({ breakers: { advanced: { cooldown_store: invalid } } }).then(breakerStoreFor),
    /policy: advanced\.cooldown_store\.dsn: /,
  );
});
