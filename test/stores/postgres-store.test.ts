import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { StoreError } from "../../src/errors.ts";
import { loadPgDriver } from "../../src/stores/postgres/postgres-driver.ts";
import { PostgresStore, type PostgresStoreOptions } from "../../src/stores/postgres/postgres-store.ts";
import { parsePostgresStoreUrl } from "../../src/stores/postgres/postgres-store-url.ts";
import type { LeaseRequest } from "../../src/stores/store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { eventually } from "../harvest/kit.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { BreakableLink } from "./breakable-link.ts";
import { recordContract } from "./record-contract.ts";
import { kindOf, one } from "./requests.ts";
import { storeContract, type TestedStore } from "./store-contract.ts";

/** A killed server refuses connections at once, so no test waits for this: a slow machine must not look like an outage. */
const PATIENT_MS = 600_000;
const HOUR_MS = 3_600_000;

describe("postgres", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  let stores = 0;

  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  function urlOf(schema: string, user = "docstokg"): string {
    return `postgres://${user}@127.0.0.1:${server.port}/postgres?schema=${schema}`;
  }

  async function opened(
    t: TestContext,
    schema: string,
    options: Partial<PostgresStoreOptions> = {},
  ): Promise<PostgresStore> {
    const store = await PostgresStore.open(urlOf(schema), { time: systemTime, timeoutMs: PATIENT_MS, ...options });
    t.after(() => store.close());
    return store;
  }

  async function tested(t: TestContext): Promise<TestedStore> {
    const time = new FakeTime();
    stores += 1;
    const schema = `contract_${stores}`;
    return {
      member: () => opened(t, schema, { time, serverUs: () => time.machineUs() }),
      advance: ms => time.advance(ms),
    };
  }
  storeContract("postgres", tested);
  recordContract("postgres", tested);

  test("no change is lost when an expired record is deleted and created again between read and write", async t => {
    const schema = "created_again";
    const [a, b] = [await opened(t, schema), await opened(t, schema)];
    const count = (store: PostgresStore, keepUs = 60_000_000) =>
      store.change<number, number>("test", ({ record = 0, nowUs }) => ({
        record: { next: record + 1, keepUntilUs: nowUs + keepUs },
        result: record + 1,
      }));
    await count(a, 1);
    const driver = await loadPgDriver({ url: urlOf(schema), schema, idleInTransactionMs: 0 });
    const sweeper = driver.client();
    await sweeper.connect();
    t.after(() => sweeper.end());
    // Both read the expired record, and wait for the lock to write.
    await sweeper.query("BEGIN; LOCK TABLE records IN EXCLUSIVE MODE");
    const counts = [count(a), count(b)];
    const isWaiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'created_again.records'::regclass";
    await eventually(async () => (await server.query(isWaiting)).length === 2);
    await sweeper.query("DELETE FROM records; COMMIT");
    assert.deepEqual((await Promise.all(counts)).toSorted(), [1, 2]);
    assert.equal((await a.read("test")).record, 2);
  });

  test("a record that is equal to the stored one is not written", async t => {
    const store = await opened(t, "equal");
    const change = (keepUntilUs: number) =>
      store.change("test", () => ({ record: { next: { count: 1 }, keepUntilUs }, result: 0 }));
    const version = async () => (await server.query("SELECT version FROM equal.records"))[0]?.["version"];
    const { nowUs } = await store.read("test");
    await change(nowUs + 60_000_000);
    const first = await version();
    await change(nowUs + 60_000_000);
    assert.equal(await version(), first);
    await change(nowUs + 60_000_001);
    assert.notEqual(await version(), first);
  });

  test("while the server is away calls reject with a StoreError, and after its return nothing is lost", async t => {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    const url = `postgres://docstokg@127.0.0.1:${own.port}/postgres`;
    const [a, b] = await Promise.all(
      [1, 2].map(() => PostgresStore.open(url, { time: systemTime, timeoutMs: PATIENT_MS })),
    );
    assert.ok(a && b);
    t.after(() => Promise.all([a.close(), b.close()]));
    assert.equal(await kindOf(a, one("k", 2, HOUR_MS)), "granted");
    await a.change("test", () => ({ record: { next: 7, keepUntilUs: Number.MAX_SAFE_INTEGER }, result: undefined }));
    let heard = 0;
    const subscription = b.signals.listen("orders", () => {
      heard += 1;
    });
    await eventually(() => subscription.isActive);
    await own.kill();
    await assert.rejects(a.exchange([], [one("k", 2, HOUR_MS)]), StoreError);
    await assert.rejects(a.read("test"), StoreError);
    await eventually(() => !subscription.isActive);
    await own.start();
    assert.equal(await kindOf(b, one("k", 2, HOUR_MS)), "granted");
    assert.equal(await kindOf(a, one("k", 2, HOUR_MS)), "wait");
    assert.equal((await b.read("test")).record, 7);
    await eventually(() => subscription.isActive);
    const before = heard;
    await a.signals.send("orders");
    await eventually(() => heard > before);
    subscription.stop();
  });

  test("a commit without acknowledgement is not applied twice, and its units are returned", async t => {
    const link = await BreakableLink.to(server.port);
    t.after(() => link.close());
    const url = `postgres://docstokg@127.0.0.1:${link.port}/postgres?schema=lost_commit`;
    const a = await PostgresStore.open(url, { time: systemTime, timeoutMs: PATIENT_MS });
    t.after(() => a.close());
    const b = await opened(t, "lost_commit");
    const three: LeaseRequest = { ...one("k", 10, HOUR_MS), least: 3, most: 3 };
    assert.equal(await kindOf(a, { ...three, least: 5, most: 5 }), "granted");
    // The reply is lost: the server has committed.
    link.cutAfterReplies(0);
    await assert.rejects(a.exchange([{ keys: ["k"], written: 0, returned: 2 }], [three]), StoreError);
    // The caller repeats its settlement. 3 of its 5 units are still leased, so 7 are left.
    await a.exchange([{ keys: ["k"], written: 0, returned: 2 }], []);
    assert.equal(await kindOf(b, { ...three, least: 8, most: 8 }), "wait");
    assert.equal(await kindOf(b, { ...three, least: 7, most: 7 }), "granted");
  });

  test("a settlement whose reply is lost is applied once, although its process repeats it", async t => {
    const link = await BreakableLink.to(server.port);
    t.after(() => link.close());
    const url = `postgres://docstokg@127.0.0.1:${link.port}/postgres?schema=lost_reply`;
    const a = await PostgresStore.open(url, { time: systemTime, timeoutMs: PATIENT_MS });
    t.after(() => a.close());
    assert.equal(await kindOf(a, { ...one("k", 5, HOUR_MS), least: 4, most: 4 }), "granted");
    link.cutAfterReplies(0);
    await assert.rejects(a.exchange([{ keys: ["k"], written: 0, returned: 4 }], []), StoreError);
    await a.exchange([{ keys: ["k"], written: 0, returned: 4 }], []);
    assert.equal(await kindOf(a, { ...one("k", 5, HOUR_MS), least: 5, most: 5 }), "granted");
  });

  test("a process that is suspended within an exchange blocks its budgets only for a while", async t => {
    const a = await opened(t, "suspended", { timeoutMs: 20_000 });
    assert.equal(await kindOf(a, one("k", 5, HOUR_MS)), "granted");
    const driver = await loadPgDriver({ url: urlOf("suspended"), schema: "suspended", idleInTransactionMs: 500 });
    const suspended = driver.client();
    suspended.on("error", () => undefined);
    await suspended.connect();
    await suspended.query("BEGIN");
    await suspended.query("SELECT pg_advisory_xact_lock(hashtextextended('suspended k', 5577))");
    assert.equal(await kindOf(a, one("k", 5, HOUR_MS)), "granted");
    await suspended.end().catch(() => undefined);
  });

  test("processes that open a store which does not exist yet at the same time create it once", async t => {
    for (const schema of ["at_once", "at_once_too"]) await Promise.all([1, 2, 3].map(() => opened(t, schema)));
  });

  test("a database that cannot be used is a permanent error, without the password", async t => {
    await server.query("CREATE SCHEMA foreign_tables; CREATE TABLE foreign_tables.x (y int)");
    await server.query("CREATE ROLE stranger LOGIN");
    for (const [url, message] of [
      [urlOf("foreign_tables"), /the schema foreign_tables has tables of another program/],
      [urlOf("own_schema", "nobody_here:Sesame"), /role "nobody_here" does not exist/],
      [urlOf("own_schema", "stranger"), /permission denied/],
      [urlOf("x").replace("/postgres?", "/missing?"), /database "missing" does not exist/],
    ] as const)
      await assert.rejects(PostgresStore.open(url, { time: systemTime, timeoutMs: PATIENT_MS }), error => {
        assert.ok(error instanceof StoreError && error.isPermanent, String(error));
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /Sesame/);
        return true;
      });
    assert.throws(
      () => parsePostgresStoreUrl("postgres://u:Sesame@h"),
      /^RangeError: the address of the PostgreSQL store/,
    );
    for (const url of ["postgres://u:p@Sesame/x@h/d", "postgres://u:12/Sesame@h/d", "postgres://u:p@h/Sesame?x@h/d"])
      assert.throws(() => parsePostgresStoreUrl(url), /must be percent-encoded$/);
    assert.equal(parsePostgresStoreUrl("postgres://u:Sesame@h/d?schema=s").name, "postgres://h/d?schema=s");
    // A role that may only read and write rows can use tables that exist.
    await (await opened(t, "shared_tables")).exchange([], []);
    await server.query(
      "GRANT USAGE ON SCHEMA shared_tables TO stranger; GRANT ALL ON ALL TABLES IN SCHEMA shared_tables TO stranger",
    );
    const store = await PostgresStore.open(urlOf("shared_tables", "stranger"), {
      time: systemTime,
      timeoutMs: PATIENT_MS,
    });
    assert.equal(await kindOf(store, one("k", 5, HOUR_MS)), "granted");
    await store.close();
  });

  test("a missing password, a server without TLS and a missing file of certificates are permanent errors", async t => {
    const folder = temporaryFolder("postgres-password");
    chmodSync(folder, 0o755);
    const rules = join(folder, "pg_hba.conf");
    writeFileSync(rules, "host all docstokg 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    const guarded = await PostgresServer.start({ hba_file: rules });
    t.after(() => guarded.stop());
    await guarded.query("CREATE ROLE harvest LOGIN PASSWORD 'Sesame'; GRANT CREATE ON DATABASE postgres TO harvest");
    const url = guarded.url({ schema: "guarded", user: "harvest" }).replace("&lease_s=60", "");
    for (const [address, message] of [
      [url, /the server asks for a password: set PGPASSWORD or PGPASSFILE$/],
      [`${url}&sslmode=verify-full`, /The server does not support SSL connections$/],
      [`${url}&sslmode=verify-full&sslrootcert=/nowhere/ca.pem`, /ENOENT: .*\/nowhere\/ca\.pem/],
    ] as const)
      await assert.rejects(PostgresStore.open(address, { time: systemTime, timeoutMs: PATIENT_MS }), error => {
        assert.ok(error instanceof StoreError && error.isPermanent, String(error));
        assert.match(error.message, message);
        return true;
      });
    const known = url.replace("harvest@", "harvest:Sesame@");
    await (await PostgresStore.open(known, { time: systemTime, timeoutMs: PATIENT_MS })).close();
  });

  test("a store of the first format keeps its records, and counts its budgets as used up", async t => {
    const state = { windows: [{ limit: 5, spanUs: HOUR_MS * 1000, grain: 1, capacity: 6 }], createdUs: 1 };
    await server.query(`CREATE SCHEMA old_format;
      CREATE TABLE old_format.docstokg_store_format AS SELECT 1 AS version;
      CREATE TABLE old_format.budgets (key text PRIMARY KEY, state text NOT NULL, expires_us bigint NOT NULL);
      CREATE INDEX budgets_expired ON old_format.budgets (expires_us);
      CREATE TABLE old_format.records (
        name text COLLATE "C" PRIMARY KEY, record text NOT NULL, keep_until_us bigint NOT NULL, version bigint NOT NULL);
      CREATE TABLE old_format.processes (id text PRIMARY KEY, seen_us bigint NOT NULL, exchange bigint NOT NULL);
      INSERT INTO old_format.budgets VALUES ('k', '${JSON.stringify({ state, tables: {} })}', ${Number.MAX_SAFE_INTEGER}),
        ('unused', '${JSON.stringify({ state: { ...state, windows: [] }, tables: {} })}', ${Number.MAX_SAFE_INTEGER});
      INSERT INTO old_format.records VALUES ('host a', '7', ${Number.MAX_SAFE_INTEGER}, 1)`);
    const [a, b] = await Promise.all([opened(t, "old_format"), opened(t, "old_format")]);
    assert.equal((await a.read("host a")).record, 7);
    const known = { ...one("k", 5, HOUR_MS), wantsUse: true };
    const [reply] = await a.exchange([], [{ ...known, claims: known.claims.map(c => ({ ...c, knownAgoUs: 1000 })) }]);
    assert.ok(reply?.kind === "wait" && !reply.isLost, JSON.stringify(reply));
    assert.deepEqual(reply.use, [[5]]);
    assert.equal(await kindOf(b, one("k", 6, HOUR_MS)), "wait");
    assert.equal(await kindOf(b, one("unused", 5, HOUR_MS)), "granted");
  });

  test("after its schema was dropped the store is created again, and tells its processes that their data are lost", async t => {
    const a = await opened(t, "dropped");
    assert.equal(await kindOf(a, one("k", 5, HOUR_MS)), "granted");
    await server.query("DROP SCHEMA dropped CASCADE");
    const [request] = [one("k", 5, HOUR_MS)];
    const [reply] = await a.exchange(
      [],
      [{ ...request, claims: request.claims.map(c => ({ ...c, knownAgoUs: 1000 })) }],
    );
    assert.ok(reply?.kind === "wait" && reply.isLost, JSON.stringify(reply));
    await server.query("DROP SCHEMA dropped CASCADE");
    assert.equal((await a.read("test")).record, undefined);
  });

  test("budgets, records and processes that have ended are deleted", async t => {
    const time = new FakeTime();
    const store = await opened(t, "swept", { time, serverUs: () => time.machineUs() });
    for (let host = 0; host < 100; host += 1) await kindOf(store, one(`h${host}`, 1, 1000));
    await store.change("test", ({ nowUs }) => ({ record: { next: 1, keepUntilUs: nowUs + 1000 }, result: 0 }));
    await time.advance(600_000);
    for (let call = 0; call < 64; call += 1) await store.exchange([], []);
    for (const table of ["budgets", "budget_members", "budget_turns", "budget_leases", "budget_stamps", "records"])
      assert.deepEqual(await server.query(`SELECT count(*) AS rows FROM swept.${table}`), [{ rows: 0 }], table);
  });
});
