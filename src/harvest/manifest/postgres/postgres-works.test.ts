import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { eventually } from "../../../../test/harvest/kit.ts";
import { PostgresServer, whyNoPostgres } from "../../../../test/harvest/postgres-server.ts";
import { loadPgDriver } from "../../../stores/postgres/postgres-driver.ts";
import { FakeTime } from "../../../testing/fake-time.ts";
import { systemTime } from "../../../time/system-time.ts";
import type { Time } from "../../../time/time.ts";
import type { Work } from "../../work.ts";
import { PostgresManifest } from "./postgres-manifest.ts";

const ATTEMPT = {
  step: "ask",
  resolver: "crossref",
  url: "https://x.example/",
  reason: "found",
  elapsedMs: 1,
} as const;
const IS_PRESENT = { isPresent: () => true };
const LISTED: readonly Work[] = [
  { key: "doi:10.1/a", ids: { doi: "10.1/a" } },
  { key: "url:https://x.example/b", ids: { url: "https://x.example/b" } },
];

describe("works of a PostgreSQL manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start({ shared_preload_libraries: "pg_stat_statements" });
    await server.query("CREATE EXTENSION pg_stat_statements");
  });
  after(() => server?.stop());

  /** Two processes, each with one of the listed works. */
  const workersFor = async (t: TestContext, url: string, time: Time = systemTime) => {
    const first = await PostgresManifest.open(url, time);
    t.after(() => first.close());
    const second = await PostgresManifest.open(url, systemTime);
    t.after(() => second.close());
    const run = await first.beginRun("run", "{}");
    await second.joinRun(run);
    await first.works.add(run, LISTED, IS_PRESENT);
    const take = async (manifest: PostgresManifest) => (await manifest.queue.take(run, "", systemTime.wallMs(), 1))[0];
    const [a, b] = [await take(first), await take(second)];
    assert.ok(a !== undefined && b !== undefined);
    return { first, second, run, a: a.work, b: b.work };
  };
  const idsOf = async (manifest: PostgresManifest, id: number) => (await manifest.reports.workRecord(id)).ids;

  /** Statements since the last reset, without the settings of new connections. */
  const statements = async () => {
    const [row] = await server.query(
      `SELECT sum(calls)::integer AS calls FROM pg_stat_statements
       WHERE query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%pg_notify%' AND query NOT LIKE 'SET %'`,
    );
    return row?.["calls"];
  };

  test("a batch of new works needs one look-up and two inserts in its transaction", async t => {
    const { first, run } = await workersFor(t, server.url());
    const works = Array.from({ length: 50 }, (_, index) => ({ key: `pmid:${index}`, ids: { pmid: `${index}` } }));
    await server.query("SELECT pg_stat_statements_reset()");
    assert.equal((await first.works.add(run, works, IS_PRESENT)).pending, 50);
    const [begin, mark, commit] = [1, 1, 1];
    assert.equal(await statements(), begin + mark + 3 + commit);
  });

  test("a listed work is found by its key if no work has its identifier", async t => {
    const { first, run } = await workersFor(t, server.url({ schema: "no_names" }));
    await server.query("DELETE FROM no_names.work_ids");
    const added = await first.works.add(run, [...LISTED, { key: "pmid:1", ids: { pmid: "1" } }], IS_PRESENT);
    assert.equal(added.pending, 1);
  });

  test("what a resolver has added to a work is stored in one exchange, also the second time", async t => {
    const { first, run, a } = await workersFor(t, server.url());
    await server.query("SELECT pg_stat_statements_reset()");
    const metadata = { title: "A", year: 2020 };
    const more = { ...a, ids: { ...a.ids, pmid: "1" }, metadata, sources: { title: "crossref", year: "crossref" } };
    assert.equal(await first.works.update(more, { run, attempt: ATTEMPT }), undefined);
    assert.equal(await first.works.update({ ...more, ids: { ...more.ids, pmcid: "PMC1" } }), undefined);
    const mark = 1;
    assert.equal(await statements(), 2 * (mark + 1));
    assert.deepEqual(await idsOf(first, a.id), { doi: "10.1/a", pmid: "1", pmcid: "PMC1" });
  });

  test("a work keeps the identifiers of a work that another process has merged into it meanwhile", async t => {
    const { first, second, run, a, b } = await workersFor(t, server.url({ schema: "merged" }));
    assert.equal(
      await second.works.merge({ ...b, ids: { ...b.ids, arxiv: "2401.00001" } }, a.id, IS_PRESENT),
      "merged",
    );
    const more = { ...a, ids: { ...a.ids, pmid: "1" } };
    assert.equal(await first.works.update(more, { run, attempt: ATTEMPT }), undefined);
    assert.equal((await server.query("SELECT * FROM merged.attempts")).length, 1, "the request is recorded once");
    const ids = { doi: "10.1/a", url: "https://x.example/b", arxiv: "2401.00001", pmid: "1" };
    assert.deepEqual(await idsOf(first, a.id), ids);
  });

  /** A transaction of another process, and a function that returns when an operation waits for its locks. */
  const lockingProcess = async (t: TestContext, schema: string) => {
    const driver = await loadPgDriver({ url: server.url(), schema, idleInTransactionMs: 0 });
    const other = driver.client();
    await other.connect();
    t.after(() => other.end());
    await other.query("BEGIN");
    const lock = (id: number) => other.query("SELECT 1 FROM works WHERE id = $1 FOR UPDATE NOWAIT", [id]);
    const isWaitedFor = async () => {
      const waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
      while ((await server.query(waits)).length === 0);
    };
    return { other, lock, isWaitedFor };
  };

  test("statements that are sent together lock works in the order of their ids", async t => {
    const { first, run, a, b } = await workersFor(t, server.url({ schema: "ordered" }));
    await server.query("UPDATE ordered.works SET taken_by = (SELECT min(id) FROM ordered.workers)");
    const { other, lock, isWaitedFor } = await lockingProcess(t, "ordered");
    await lock(a.id);
    const alone = first.recordAttempt(run, b.id, ATTEMPT);
    const together = [b, a].map(({ id }) => first.saveProgress(id, "", "{}"));
    await alone;
    await isWaitedFor();
    await lock(b.id);
    await other.query("COMMIT");
    await Promise.all(together);
  });

  test("a look-up does not wait for a work that another process has locked", async t => {
    const { first, a, b } = await workersFor(t, server.url({ schema: "looked_up" }));
    const { other, lock, isWaitedFor } = await lockingProcess(t, "looked_up");
    await lock(a.id);
    const saved = first.saveProgress(a.id, "", "{}");
    await isWaitedFor();
    assert.deepEqual(await first.files.knownDownload("0", b.id), { source: undefined, part: undefined, ofWork: [] });
    await other.query("COMMIT");
    await saved;
  });

  test("a lease is renewed while all other connections wait for a work that another process has locked", async t => {
    const time = new FakeTime();
    const { first, a, b } = await workersFor(t, server.url({ schema: "renewed" }), time);
    const { other, lock, isWaitedFor } = await lockingProcess(t, "renewed");
    await lock(a.id);
    const saved = first.saveProgress(a.id, "", "{}");
    const merges = Array.from({ length: 6 }, () => first.works.merge(a, b.id, IS_PRESENT));
    await isWaitedFor();
    const leases = `SELECT lease_until_ms FROM renewed.workers ORDER BY id LIMIT 1`;
    const before = await server.query(leases);
    await time.advance(15_000);
    await eventually(async () => (await server.query(leases))[0]?.["lease_until_ms"] !== before[0]?.["lease_until_ms"]);
    await other.query("ROLLBACK");
    await saved;
    await Promise.allSettled(merges);
  });

  test("unfinished and failed works are locked in the order of their ids", async t => {
    const { first, a, b } = await workersFor(t, server.url({ schema: "retried" }));
    for (const state of ["pending", "failed"]) {
      // The table has the rows in the opposite order.
      for (const { id } of [b, a])
        await server.query(`UPDATE retried.works SET state = '${state}', taken_by = NULL WHERE id = ${id}`);
      const { other, lock, isWaitedFor } = await lockingProcess(t, "retried");
      await lock(a.id);
      const added = first.works.addUnfinished(1, "all", true);
      await isWaitedFor();
      await lock(b.id);
      await other.query("COMMIT");
      assert.equal(await added, 2);
    }
  });

  test("many unfinished works are added in several transactions", async t => {
    const { first, run } = await workersFor(t, server.url({ schema: "many" }));
    const works = Array.from({ length: 5000 }, (_, index) => ({ key: `pmid:${index}`, ids: { pmid: `${index}` } }));
    await first.works.add(run, works, IS_PRESENT);
    const later = await first.beginRun("retry");
    const { other, lock, isWaitedFor } = await lockingProcess(t, "many");
    const [last] = await server.query("SELECT max(id)::integer AS id FROM many.works");
    await lock(Number(last?.["id"]));
    const added = first.works.addUnfinished(later, [], true);
    await isWaitedFor();
    const moved = `SELECT count(*)::integer AS works FROM many.works WHERE run = ${later}`;
    assert.deepEqual(await server.query(moved), [{ works: 5000 }]);
    await other.query("COMMIT");
    assert.equal(await added, 5002);
    assert.deepEqual(await server.query(moved), [{ works: 5002 }]);
  });

  /** Another process changes the manifest, and commits when the operation of this one waits for it. */
  const commitDuring = async <Result>(
    t: TestContext,
    schema: string,
    sql: string,
    parameters: readonly number[],
    operation: () => Promise<Result>,
  ) => {
    const { other, isWaitedFor } = await lockingProcess(t, schema);
    await other.query(sql, [...parameters]);
    const result = operation();
    await isWaitedFor();
    await other.query("COMMIT");
    return result;
  };

  test("the owner of an identifier is found if another process adds it in this moment", async t => {
    const { first, a, b } = await workersFor(t, server.url({ schema: "moment" }));
    const add = "INSERT INTO work_ids (id, work) VALUES ('pmid:1', $1)";
    const update = () => first.works.update({ ...a, ids: { ...a.ids, pmid: "1" } });
    assert.equal(await commitDuring(t, "moment", add, [b.id], update), b.id);
  });

  test("a work does not fail if another process merges a work into it in this moment", async t => {
    const { first, a } = await workersFor(t, server.url({ schema: "failing" }));
    const merge = `UPDATE works SET inherited = '["of b"]' WHERE id = $1`;
    const fail = () => first.fail(a.id, "no-copy", undefined, undefined, 0);
    const result = await commitDuring(t, "failing", merge, [a.id], fail);
    assert.deepEqual(typeof result === "object" && result.inherited, ["of b"]);
    assert.equal(await first.fail(a.id, "no-copy", undefined, undefined, 1), "failed");
  });
});
