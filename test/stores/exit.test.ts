/** A shared store does not keep a program alive (law S8). */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { createHub, RateLimitExceeded } from "../../src/index.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";

/** The number of timers that keep a program alive after its last fetch. */
async function timersAfterFetch(t: TestContext, store: string): Promise<string> {
  const server = createServer((_, response) => response.end("ok")).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const file = join(import.meta.dirname, "exit-process.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [file, store, url]);
  return stdout;
}

test("after its last fetch a program with a SQLite store has no more timers than one without a store", async t => {
  const folder = temporaryFolder("exit");
  const without = await timersAfterFetch(t, "memory");
  assert.equal(await timersAfterFetch(t, `sqlite:${join(folder, "s.db")}`), without);
});

test("after its last fetch a program with a Redis store has no more timers than one without a store", {
  skip: whyNoRedis(),
}, async t => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  const without = await timersAfterFetch(t, "memory");
  assert.equal(await timersAfterFetch(t, redis.url), without);
});

test("after its last fetch a program with a PostgreSQL store has no more timers than one without a store", {
  skip: whyNoPostgres(),
}, async t => {
  const server = await PostgresServer.start();
  t.after(() => server.stop());
  const without = await timersAfterFetch(t, "memory");
  assert.equal(await timersAfterFetch(t, `postgres://docstokg@127.0.0.1:${server.port}/postgres`), without);
});

test("a program whose last request was aborted ends without waiting, and the request counts as sent", async t => {
  let requests = 0;
  const received = Promise.withResolvers<void>();
  const server = createServer(() => {
    requests += 1;
    received.resolve();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const store = `sqlite:${join(temporaryFolder("exit"), "s.db")}` as const;
  const file = join(import.meta.dirname, "aborted-process.ts");
  const running = promisify(execFile)(process.execPath, [file, store, url]);
  await Promise.race([received.promise, running]);
  assert.equal(requests, 1);
  running.child.stdin?.end("x");
  // A request over a new connection counts as being written for five seconds: no timer for that keeps the program alive.
  assert.equal((await running).stdout, "0\n");
  const policy = { ratelimits: { hosts: { "127.0.0.1": { metadata: { rates: "1/MINUTE" } } } } };
  const hub = await createHub({ store, env: {}, policy });
  t.after(() => hub.close());
  await assert.rejects(hub.fetch(url, { maxWaitMs: 0 }), RateLimitExceeded);
  assert.equal(requests, 1);
});
