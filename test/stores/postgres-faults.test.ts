/** A PostgreSQL store whose server, network or own process stops for a while. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { StoreError } from "../../src/errors.ts";
import { loadPgDriver } from "../../src/stores/postgres/postgres-driver.ts";
import { PostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { PostgresProxy } from "../harvest/postgres-proxy.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { kindOf, one } from "./requests.ts";

const HOUR_MS = 3_600_000;
/** Statements that wait for a lock fail after this time of the real clock. */
const TIMEOUT_MS = 30_000;

describe("postgres", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  function urlOf(schema: string): string {
    return `postgres://docstokg@127.0.0.1:${server.port}/postgres?schema=${schema}`;
  }

  /** Suspends the processes of the server that serve the store. */
  async function suspend(t: TestContext): Promise<void> {
    const rows = await server.query(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'docstokg' AND pid <> pg_backend_pid()",
    );
    for (const { pid } of rows) {
      process.kill(Number(pid), "SIGSTOP");
      t.after(() => process.kill(Number(pid), "SIGCONT"));
    }
  }

  test("a process whose event loop was blocked does not take it for a server that does not answer", async t => {
    const time = new FakeTime();
    const store = await opened(t, urlOf("blocked"), time);
    await store.read("a");
    const driver = await loadPgDriver({ url: urlOf("blocked"), schema: "blocked", idleInTransactionMs: 0 });
    const other = driver.client();
    await other.connect();
    t.after(() => other.end());
    await other.query("BEGIN; LOCK TABLE records");
    const reading = store.read("a");
    await time.advance(0.7 * TIMEOUT_MS);
    await time.stall(1.2 * TIMEOUT_MS);
    await other.query("COMMIT");
    assert.equal((await reading).record, undefined);
  });

  test("a store whose server does not answer any more closes after its time limit", async t => {
    const time = new FakeTime();
    const store = await opened(t, urlOf("suspended"), time);
    // Opens the connection for records too.
    await store.read("a");
    await suspend(t);
    await settled(time, store.close());
  });

  test("calls that have waited as long as one without a reply fail with it, without statements of their own", async t => {
    const time = new FakeTime();
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const store = await opened(t, proxy.urlOf(urlOf("queued")), time);
    await store.read("a");
    let connections = 0;
    proxy.accepts = () => {
      connections += 1;
      return true;
    };
    proxy.toServer = () => undefined;
    const write = (name: string) => store.change(name, () => ({ result: name }));
    await assertFail(
      time,
      Array.from({ length: 50 }, (_, at) => write(`r${at}`)),
      /^postgres: no reply within 30000 ms$/,
    );
    assert.equal(connections, 0);
    await assertFail(time, ["a", "b", "c"].map(write), /^postgres: no connection within 30000 ms$/);
    assert.equal(connections, 1);
    proxy.toServer = bytes => bytes;
    assert.equal(await write("a"), "a");
  });

  test("processes share a database whose transactions are serializable by default", async t => {
    const strict = await PostgresServer.start({ default_transaction_isolation: "serializable" });
    t.after(() => strict.stop());
    const url = `postgres://docstokg@127.0.0.1:${strict.port}/postgres`;
    const time = new FakeTime();
    const stores = await Promise.all([1, 2, 3].map(() => opened(t, url, time)));
    const lease = async (store: PostgresStore) => {
      for (let unit = 0; unit < 20; unit += 1) {
        assert.equal(await kindOf(store, one("k", 1000, HOUR_MS)), "granted");
        await store.change<number, void>("count", ({ record = 0, nowUs }) => ({
          record: { next: record + 1, keepUntilUs: nowUs + HOUR_MS * 1000 },
          result: undefined,
        }));
      }
    };
    await Promise.all(stores.map(lease));
    assert.equal((await stores[0]?.read("count"))?.record, 60);
  });

  test("connections have no startup options, which PgBouncer refuses", async t => {
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const sent: Buffer[] = [];
    proxy.toServer = bytes => {
      sent.push(bytes);
      return bytes;
    };
    const store = await opened(t, proxy.urlOf(urlOf("pooled")), new FakeTime());
    await store.read("a");
    const text = Buffer.concat(sent).toString("latin1");
    assert.match(text, /\0database\0postgres\0/);
    assert.doesNotMatch(text, /\0options\0/);
  });

  test("names with characters that PostgreSQL cannot store are names like others", async t => {
    const store = await opened(t, urlOf("names"), new FakeTime());
    const name = "host a\0b\ud800";
    await store.change(name, ({ nowUs }) => ({
      record: { next: 1, keepUntilUs: nowUs + 60_000_000 },
      result: undefined,
    }));
    assert.equal((await store.read(name)).record, 1);
    assert.equal(await kindOf(store, one(name, 1, HOUR_MS)), "granted");
  });
});

async function opened(t: TestContext, url: string, time: FakeTime): Promise<PostgresStore> {
  const store = await PostgresStore.open(url, { time, timeoutMs: TIMEOUT_MS });
  t.after(() => settled(time, store.close()));
  return store;
}

/** Lets time pass until the promise is settled. */
async function settled(time: FakeTime, promise: Promise<unknown>): Promise<void> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  promise.then(settle, settle);
  while (!isSettled) await time.advance(TIMEOUT_MS / 10);
}

async function assertFail(time: FakeTime, calls: readonly Promise<unknown>[], message: RegExp): Promise<void> {
  const outcomes = Promise.allSettled(calls);
  await settled(time, outcomes);
  for (const outcome of await outcomes) {
    assert.equal(outcome.status, "rejected");
    assert.ok(outcome.reason instanceof StoreError);
    assert.match(outcome.reason.message, message);
  }
}
