/** A store that can never work is an error of `createHub`, before the first request (law S4). */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { createHub, StoreError, type StoreName } from "../../src/index.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";

const folder = temporaryFolder("unusable");

async function assertRefused(store: StoreName, message: RegExp): Promise<void> {
  await assert.rejects(createHub({ store, env: {} }), (error: unknown) => {
    assert.ok(error instanceof StoreError, String(error));
    assert.equal(error.isPermanent, true);
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
}

test("createHub refuses a file that is not a store, and leaves it as it is", async () => {
  const list = join(folder, "my-list.csv");
  const content = "doi,title\n10.1000/1,first\n";
  writeFileSync(list, content);
  await assertRefused(
    `sqlite:${list}`,
    /my-list\.csv: the file exists and is not a database of docstokg.*; name another/,
  );
  assert.equal(readFileSync(list, "utf8"), content);
  assert.deepEqual(readdirSync(folder), ["my-list.csv"]);
});

test("createHub refuses a database of another program and of a newer version", async () => {
  const theirs = join(folder, "theirs.db");
  const db = new DatabaseSync(theirs);
  db.exec("CREATE TABLE theirs (x)");
  await assertRefused(`sqlite:${theirs}`, /a database of another program; name another file/);
  db.close();
  const newer = join(folder, "newer.db");
  await (await createHub({ store: `sqlite:${newer}`, env: {} })).close();
  const own = new DatabaseSync(newer);
  own.exec("PRAGMA user_version = 99");
  own.close();
  await assertRefused(`sqlite:${newer}`, /format version 99, but this version of docstokg reads up to/);
});

test("createHub refuses a path that cannot be written", async () => {
  await assertRefused("sqlite:/proc/limits.db", /cannot open \/proc\/limits\.db: .*; change the permissions/);
  await assertRefused(`sqlite:${import.meta.filename}/limits.db`, /cannot open .*limits\.db: /);
  await assertRefused(`sqlite:${folder}`, /cannot open /);
});

describe("redis", { skip: whyNoRedis() }, () => {
  test("createHub refuses a wrong password, a missing password and an unknown database", async t => {
    const server = await RedisServer.start("--requirepass", "right");
    t.after(() => server.stop());
    const { host } = new URL(server.url);
    await assertRefused(`redis://:secret@${host}`, /WRONGPASS/);
    await assertRefused(`redis://${host}`, /NOAUTH/);
    await assertRefused(`redis://:right@${host}/999`, /DB index is out of range/);
    await (await createHub({ store: `redis://:right@${host}`, env: {} })).close();
  });

  test("createHub refuses a host that does not exist", async () => {
    await assertRefused("redis://:secret@no-such-host.invalid", /no-such-host\.invalid.*check the host in the URL/);
  });

  test("createHub accepts a server that does not answer yet", async () => {
    const port = await RedisServer.freePort();
    await (await createHub({ store: `redis://127.0.0.1:${port}`, env: {} })).close();
  });
});
