import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { eventually } from "../../../../test/harvest/kit.ts";
import { PostgresServer, whyNoPostgres } from "../../../../test/harvest/postgres-server.ts";
import { FakeTime } from "../../../testing/fake-time.ts";
import { systemTime } from "../../../time/system-time.ts";
import type { Work } from "../../work.ts";
import type { Manifest } from "../manifest.ts";
import { PostgresManifest } from "./postgres-manifest.ts";

const works = (count: number): readonly Work[] =>
  Array.from({ length: count }, (_, index) => ({ key: `doi:10.1/${index}`, ids: { doi: `10.1/${index}` } }));
const IS_PRESENT = { isPresent: () => true };

describe("sessions of workers with a lease of an hour", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  const taken = async (manifest: Manifest, run: number) =>
    (await manifest.queue.take(run, "", systemTime.wallMs(), 100)).map(({ work }) => work.id);
  const schemaOf = (url: string) => String(new URL(url).searchParams.get("schema"));
  const sessionsOf = async (url: string) =>
    (await server.query(`SELECT session FROM ${schemaOf(url)}.workers ORDER BY id`)).map(({ session }) => session);
  /** A process that watches the manifest, and whose time the test moves. */
  const watchingProcess = async (t: TestContext, url: string, run?: number) => {
    const time = new FakeTime();
    const manifest = await PostgresManifest.open(url, time);
    t.after(() => manifest.close());
    const joined = run ?? (await manifest.beginRun("run", "{}"));
    if (run !== undefined) await manifest.joinRun(run);
    manifest.watch(() => undefined);
    await eventually(async () => (await sessionsOf(url)).at(-1) !== null);
    return { manifest, time, run: joined };
  };
  const HOUR = { leaseS: 3600 };
  /** A process that has died: no connection has the lock of its session. Returns the id of its worker. */
  const addDeadWorker = async (url: string, run: number) => {
    const [dead] = await server.query(
      `INSERT INTO ${schemaOf(url)}.workers (run, name, is_listing, started_ms, lease_until_ms, session)
       VALUES (${run}, 'dead:1', false, 0, 9e15, 12345) RETURNING id`,
    );
    return Number(dead?.["id"]);
  };
  const names = async (manifest: Manifest) => (await manifest.reports.workers()).map(({ name }) => name);

  test("the works of a process that died are taken over when its connection has ended for two seconds", async t => {
    const url = server.url(HOUR);
    const { manifest, time, run } = await watchingProcess(t, url);
    await manifest.works.add(run, works(2), IS_PRESENT);
    await server.query(`UPDATE ${schemaOf(url)}.works SET taken_by = ${await addDeadWorker(url, run)}`);
    assert.deepEqual(await taken(manifest, run), []);
    await time.advance(11_000);
    assert.equal((await names(manifest)).includes("dead:1"), true, "one look is not enough");
    await eventually(async () => {
      await time.advance(2000);
      return !(await names(manifest)).includes("dead:1");
    });
    await eventually(async () => (await taken(manifest, run)).length === 2);
  });

  test("every process is notified which process of the store has died, but not of one that may be suspended", async t => {
    const url = server.url(HOUR);
    const { manifest, time, run } = await watchingProcess(t, url);
    const { manifest: other } = await watchingProcess(t, url, run);
    const found: string[] = [];
    for (const [name, each] of Object.entries({ manifest, other }))
      each.shareLimits(name, storeIds => found.push(`${name}: ${storeIds}`));
    const setStoreId = (id: number, columns: string) =>
      server.query(`UPDATE ${schemaOf(url)}.workers SET ${columns} WHERE id = ${id}`);
    await setStoreId(
      await addDeadWorker(url, run),
      "name = 'late', store_id = 'late-1', session = NULL, lease_until_ms = 0",
    );
    await setStoreId(await addDeadWorker(url, run), "store_id = 'dead-1'");
    await eventually(async () => {
      await time.advance(2000);
      return !(await names(manifest)).includes("dead:1");
    });
    await eventually(() => found.length === 2);
    assert.deepEqual(found.toSorted(), ["manifest: dead-1", "other: dead-1"]);
  });

  test("a process whose connection has broken keeps its works while it renews its lease", async t => {
    const url = server.url(HOUR);
    const { manifest: first, run } = await watchingProcess(t, url);
    await first.works.add(run, works(1), IS_PRESENT);
    const ids = await taken(first, run);
    const [before] = await sessionsOf(url);
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
         AND (classid::bigint << 32 | objid::bigint) = ${before}`,
    );
    // The timer that connects again stands still.
    await eventually(async () => (await sessionsOf(url))[0] === null);
    const { manifest: second, time } = await watchingProcess(t, url, run);
    await addDeadWorker(url, run);
    await eventually(async () => {
      await time.advance(2000);
      return !(await names(second)).includes("dead:1");
    });
    assert.equal((await names(second)).length, 2);
    await first.fail(ids[0] ?? 0, "no-copy", undefined);
  });
});
