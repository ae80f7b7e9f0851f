import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { manifestContract } from "../../../../test/harvest/manifest-contract.ts";
import { PostgresServer, whyNoPostgres } from "../../../../test/harvest/postgres-server.ts";
import { FakeTime } from "../../../testing/fake-time.ts";
import { SystemTime, systemTime } from "../../../time/system-time.ts";
import type { Work } from "../../work.ts";
import { LeaseLostError } from "../lease-lost-error.ts";
import type { Manifest } from "../manifest.ts";
import type { DownloadedFile } from "../manifest-files.ts";
import { PostgresManifest } from "./postgres-manifest.ts";

const works = (count: number): readonly Work[] =>
  Array.from({ length: count }, (_, index) => ({ key: `doi:10.1/${index}`, ids: { doi: `10.1/${index}` } }));
const IS_PRESENT = { isPresent: () => true };
const NO_SURPLUS = { downloads: 0, queries: 0 };
const FILE: DownloadedFile = {
  ...{ sha256: "ab".repeat(32), path: "a.pdf", bytes: 10, mediaType: "application/pdf" },
  ...{ urlHash: "0".repeat(64), url: "https://x.example/a.pdf", resolver: "openalex" },
};

describe("a PostgreSQL manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  const manifestFor = async (t: TestContext, url = server.url(), time = systemTime as FakeTime | typeof systemTime) => {
    const manifest = await PostgresManifest.open(url, time);
    t.after(() => manifest.close());
    return manifest;
  };
  const taken = async (manifest: Manifest, run: number, limit = 100) =>
    (await manifest.queue.take(run, "", systemTime.wallMs(), limit)).map(({ work }) => work.id);

  manifestContract(manifestFor);

  test("processes that open a manifest which does not exist yet at the same time create it once", async t => {
    for (const url of [server.url(), server.url()]) await Promise.all([1, 2, 3].map(() => manifestFor(t, url)));
  });

  test("a partial file is abandoned when its worker has ended, and never one of another manifest", async t => {
    const first = await manifestFor(t);
    const other = await manifestFor(t);
    await first.joinRun(await first.beginRun("run"));
    await other.beginRun("run");
    const file = first.files.newPartName();
    assert.ok(first.files.isOwnPart(file));
    assert.deepEqual(await other.files.abandoned([file]), []);
    assert.deepEqual(await first.files.abandoned([file]), []);
    await first.beginRun("run");
    assert.ok(!first.files.isOwnPart(file));
    // Earlier versions named the worker only.
    assert.deepEqual(await first.files.abandoned([file, "w1-00.part", "x.part"]), [file, "w1-00.part"]);
    assert.deepEqual(await other.files.abandoned([file]), []);
  });

  test("a manifest without a worker has no partial files of others to remove", async t => {
    const manifest = await manifestFor(t);
    const run = await manifest.beginRun("run");
    const own = manifest.files.newPartName();
    await manifest.endRun(run, "ended");
    const ofOthers = ["m0123456789ab-00.part", "p0123456789abw1-00.part", "x.part"];
    assert.deepEqual(await manifest.files.abandoned([...ofOthers, own]), [own]);
  });

  test("several processes take different works, and a run ends when the last of them has no more", async t => {
    const url = server.url();
    const first = await manifestFor(t, url);
    const second = await manifestFor(t, url);
    const run = await first.beginRun("run", "{}");
    await first.works.add(run, works(50), IS_PRESENT);
    assert.deepEqual(await second.nextRun(), { id: run, settings: "{}" });
    await second.joinRun(run);
    const all = await Promise.all(Array.from({ length: 10 }, (_, index) => taken(index % 2 ? first : second, run, 5)));
    assert.equal(new Set(all.flat()).size, 50);
    assert.deepEqual(
      (await first.reports.workers()).map(worker => [worker.run, worker.taken, worker.isListing, worker.isAlive]),
      [
        [run, 25, true, true],
        [run, 25, false, true],
      ],
    );
    assert.equal(await first.tryLock(), undefined);
    for (const [index, ids] of all.entries())
      for (const id of ids) await (index % 2 ? first : second).fail(id, "no-copy", undefined);
    assert.equal(await second.queue.isFinished(run), false, "the first one still lists");
    await second.endRun(run, "ended");
    assert.equal((await first.reports.report()).runs[0]?.state, "running");
    await second.joinRun(run);
    await first.endListing();
    assert.equal(await second.queue.isFinished(run), true);
    await first.endRun(run, "ended");
    assert.equal((await first.reports.report()).runs[0]?.state, "ended");
    await second.endRun(run, "ended");
    assert.equal((await first.reports.report()).runs[0]?.state, "ended");
    assert.equal(await second.nextRun(), undefined);
    assert.ok(await first.tryLock());
  });

  test("a short list is divided among the processes, and a process that has settled its works gets more", async t => {
    const url = server.url();
    const [first, second, third] = [await manifestFor(t, url), await manifestFor(t, url), await manifestFor(t, url)];
    const run = await first.beginRun("run", "{}");
    await first.works.add(run, works(120), IS_PRESENT);
    await second.joinRun(run);
    await third.joinRun(run);
    const mine = await taken(first, run, 128);
    const others = await taken(second, run, 128);
    assert.deepEqual([mine.length, others.length], [40, 40]);
    assert.deepEqual(await taken(first, run, 128), []);
    // The third process takes none. 120 - 30 works are left, of which the first one may have 30, and has 10.
    for (const id of mine.slice(0, 30)) await first.fail(id, "no-copy", undefined);
    assert.equal((await taken(first, run, 128)).length, 20);
    await third.endRun(run, "ended");
    assert.equal((await taken(first, run, 128)).length, 15);
    assert.equal((await taken(second, run, 128)).length, 5);
  });

  test("a process that has more than its share of a short list since another one has joined knows how much", async t => {
    const url = server.url();
    const [first, second] = [await manifestFor(t, url), await manifestFor(t, url)];
    const run = await first.beginRun("run", "{}");
    await first.works.add(run, works(600), IS_PRESENT);
    const mine = await taken(first, run, 600);
    assert.deepEqual(await first.queue.surplus(run), NO_SURPLUS);
    await second.joinRun(run);
    assert.deepEqual(await first.queue.surplus(run), { downloads: 300, queries: 300 });
    assert.deepEqual(await second.queue.surplus(run), NO_SURPLUS);
    for (const id of mine.slice(0, 598)) await first.fail(id, "no-copy", undefined);
    assert.deepEqual(await first.queue.surplus(run), NO_SURPLUS);
  });

  test("a process that gives its surplus back cannot take these works again", async t => {
    for (const [queue, kind, kept] of [
      ["api.example.org metadata", "queries", 25],
      ["x.example artifact", "downloads", 14],
    ] as const) {
      const url = server.url();
      const [first, second, third] = [await manifestFor(t, url), await manifestFor(t, url), await manifestFor(t, url)];
      const run = await first.beginRun("run", "{}");
      await first.works.add(run, works(40), { ...IS_PRESENT, queueOf: () => queue });
      const take = () => first.queue.take(run, queue, systemTime.wallMs(), 128);
      const mine = await take();
      await second.joinRun(run);
      await third.joinRun(run);
      const { [kind]: surplus } = await first.queue.surplus(run);
      assert.equal(mine.length - surplus, kept);
      for (const { work } of mine.slice(kept))
        await first.queue.putOff(work.id, { queue, notBeforeMs: 0, progress: undefined });
      assert.deepEqual(await take(), []);
    }
  });

  test("the last downloads are divided among the processes, and the last queries are not", async t => {
    const countsOf = async (queue: string) => {
      const url = server.url();
      const [first, second] = [await manifestFor(t, url), await manifestFor(t, url)];
      const run = await first.beginRun("run", "{}");
      await second.joinRun(run);
      await first.works.add(run, works(20), { ...IS_PRESENT, queueOf: () => queue });
      const counts: number[] = [];
      for (let left = 20; left > 0; ) {
        const some = await first.queue.take(run, queue, systemTime.wallMs(), 128);
        for (const { work } of some) await first.fail(work.id, "no-copy", undefined);
        counts.push(some.length);
        left -= some.length;
      }
      return counts;
    };
    assert.deepEqual(await countsOf("api.example.org metadata"), [20]);
    assert.deepEqual(await countsOf("x.example artifact"), [10, 5, 4, 1]);
  });

  test("of a long list a process takes as many works as it wants", async t => {
    const url = server.url();
    const [first, second] = [await manifestFor(t, url), await manifestFor(t, url)];
    const run = await first.beginRun("run", "{}");
    await first.works.add(run, works(1100), IS_PRESENT);
    await second.joinRun(run);
    assert.equal((await taken(first, run, 700)).length, 700);
    // 400 works wait, and 1,100 are left.
    assert.equal((await taken(second, run, 700)).length, 400);
    assert.deepEqual(await first.queue.surplus(run), NO_SURPLUS);
  });

  test("works that are put back are announced to the other processes", async t => {
    const url = server.url();
    const first = await manifestFor(t, url);
    const second = await manifestFor(t, url);
    const run = await first.beginRun("run", "{}");
    await first.works.add(run, works(2), IS_PRESENT);
    await taken(first, run);
    await second.joinRun(run);
    let changed = Promise.withResolvers<void>();
    second.watch(
      () => changed.resolve(),
      () => undefined,
      () => ({ done: 0, failed: 0, bytes: 0, inFlight: 0 }),
    );
    await changed.promise;
    changed = Promise.withResolvers();
    assert.deepEqual(await taken(second, run), []);
    await first.endRun(run, "interrupted");
    await changed.promise;
    assert.equal((await taken(second, run)).length, 2);
  });

  test("the works of a dead process are taken over after its lease, and its results are refused", async t => {
    const url = server.url({ leaseS: 2 });
    // Its clock stands still, so it renews no lease.
    const dead = await manifestFor(t, url, new FakeTime());
    const run = await dead.beginRun("run", "{}");
    await dead.works.add(run, works(3), IS_PRESENT);
    const ids = await taken(dead, run);
    const part = { urlHash: "u", work: ids[0] ?? 0, file: dead.files.newPartName(), validator: undefined };
    await dead.files.savePart({ ...part, totalBytes: undefined, destination: FILE });
    const other = await manifestFor(t, url);
    await other.joinRun(run);
    const recovered = Promise.withResolvers<readonly number[]>();
    await other.recover(async parts => {
      if (parts.length > 0) recovered.resolve(parts.map(({ work }) => work));
      for (const { work } of parts) await other.finish(run, work, "ok", FILE);
    });
    assert.deepEqual(await taken(other, run), []);
    assert.deepEqual(await recovered.promise, [ids[0]]);
    let changed = Promise.withResolvers<void>();
    other.watch(
      () => changed.resolve(),
      () => undefined,
      () => ({ done: 0, failed: 0, bytes: 0, inFlight: 0 }),
    );
    let takenOver: readonly number[] = [];
    // The first change may be the work that was recovered.
    while (takenOver.length === 0) {
      await changed.promise;
      changed = Promise.withResolvers();
      takenOver = await taken(other, run);
    }
    assert.deepEqual(takenOver, ids.slice(1));
    const id = ids[1] ?? 0;
    await assert.rejects(dead.finish(run, id, "ok", FILE), LeaseLostError);
    await assert.rejects(dead.queue.takeLater(run, 0, [""], 1), LeaseLostError);
    await other.fail(id, "no-copy", undefined);
    assert.deepEqual((await other.reports.report()).works, { total: 3, done: 1, failed: 1, pending: 1, merged: 0 });
    assert.deepEqual(await other.files.abandoned([part.file, other.files.newPartName(), "mine.part"]), [part.file]);
  });

  /** The changes of the lease of a worker: `true` when it is overdue, `false` when it was renewed, or why it is lost. */
  const leaseOf = (manifest: Manifest) => {
    const events: unknown[] = [];
    let changed = Promise.withResolvers<void>();
    const add = (event: unknown) => {
      events.push(event);
      changed.resolve();
    };
    const status = { done: 0, failed: 0, bytes: 0, inFlight: 0 };
    manifest.watch(
      () => undefined,
      add,
      () => status,
      add,
    );
    return async (): Promise<unknown> => {
      if (events.length === 0) await changed.promise;
      changed = Promise.withResolvers();
      return events.shift();
    };
  };

  test("a process that cannot renew its lease stops before another one has its works", async t => {
    const url = server.url({ schema: "overdue", leaseS: 2 });
    const time = new FakeTime();
    const manifest = await manifestFor(t, url, time);
    const run = await manifest.beginRun("run", "{}");
    await manifest.works.add(run, works(1), IS_PRESENT);
    const [id] = await taken(manifest, run);
    const nextEvent = leaseOf(manifest);
    await server.query("UPDATE overdue.works SET taken_by = NULL; DELETE FROM overdue.workers");
    await time.advance(2001);
    assert.equal(await nextEvent(), true);
    assert.ok((await nextEvent()) instanceof LeaseLostError);
    await assert.rejects(manifest.fail(id ?? 0, "no-copy", undefined), /could not be renewed for 2 s/);
  });

  test("a lease that was not renewed in time is renewed later if no other process has the works", async t => {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    const time = new FakeTime();
    const manifest = await manifestFor(t, own.url({ leaseS: 2 }), time);
    const run = await manifest.beginRun("run", "{}");
    await manifest.works.add(run, works(1), IS_PRESENT);
    const [id] = await taken(manifest, run);
    const nextEvent = leaseOf(manifest);
    await own.kill();
    await time.advance(120_000);
    assert.equal(await nextEvent(), true);
    await own.start();
    let isRenewed = false;
    const renewed = nextEvent().then(event => {
      isRenewed = true;
      return event;
    });
    // The pauses between the tries are virtual, and the tries are real.
    while (!isRenewed) {
      await systemTime.sleep(5);
      if (!isRenewed) await time.advance(10);
    }
    assert.equal(await renewed, false);
    assert.equal(await manifest.fail(id ?? 0, "no-copy", undefined), "failed");
  });

  test("a server that stays away for ten minutes ends the run with its error, also if nothing else is to be done", async t => {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    const time = new FakeTime();
    const manifest = await manifestFor(t, own.url({ leaseS: 2 }), time);
    await manifest.beginRun("run", "{}");
    const nextEvent = leaseOf(manifest);
    await own.kill();
    const events: unknown[] = [];
    while (!(events.at(-1) instanceof Error)) {
      const next = nextEvent().then(event => events.push(event));
      const count = events.length;
      while (events.length === count) {
        await systemTime.sleep(5);
        if (events.length === count) await time.advance(2000);
      }
      await next;
    }
    assert.equal(events[0], true);
    assert.equal(events.length, 2);
    assert.match(String(events[1]), /StoreError: cannot reach the manifest postgres:/);
  });

  test("connections to a server that was demoted are replaced, and the operation is repeated", async t => {
    const role = "demoted";
    await server.query(`CREATE ROLE ${role} LOGIN SUPERUSER`);
    const setReadOnly = (value: "on" | "off") =>
      server.query(`ALTER ROLE ${role} SET default_transaction_read_only = ${value}`);
    const manifest = await manifestFor(t, server.url({ user: role }));
    const run = await manifest.beginRun("run");
    await manifest.works.add(run, works(1), IS_PRESENT);
    const [id = 0] = await taken(manifest, run);
    await setReadOnly("on");
    await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
    // Opens a connection that can only read. Later ones can write.
    await manifest.reports.report();
    await setReadOnly("off");
    assert.equal(await manifest.fail(id, "no-copy", undefined), "failed");
  });

  test("a run that begins on a read-only server is refused at once", async t => {
    const url = server.url({ schema: "standby" });
    await (await PostgresManifest.open(url, systemTime)).close();
    const role = "reader";
    await server.query(
      `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET default_transaction_read_only = on`,
    );
    const manifest = await manifestFor(t, server.url({ schema: "standby", user: role }));
    await assert.rejects(manifest.beginRun("run"), {
      name: "ConfigError",
      message: /cannot write the manifest .*standby.*: the server is read-only/,
    });
  });

  test("a batch of a list does not read the works that are there already", async () => {
    const url = server.url({ schema: "long_list" });
    const add = async (from: number, count: number, batches: number) => {
      const manifest = await PostgresManifest.open(url, systemTime);
      const run = await manifest.beginRun("run", "{}");
      for (let batch = 0; batch < batches; batch += 1)
        await manifest.works.add(run, works(from + (batch + 1) * count).slice(from + batch * count), IS_PRESENT);
      await manifest.close();
    };
    // The counts of a connection are complete when it is closed.
    const readOneByOne = async () => {
      await server.query("SELECT pg_stat_clear_snapshot()");
      const [row] = await server.query(
        "SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'long_list' AND relname = 'works'",
      );
      return Number(row?.["seq_tup_read"]);
    };
    await add(0, 20_000, 1);
    const before = await readOneByOne();
    // Small batches: the server may read a small table as a whole if a batch names much of it.
    await add(20_000, 10, 10);
    assert.equal((await readOneByOne()) - before, 0);
  });

  test("a list of many batches holds no more locks than a list of one", async t => {
    const manifest = await manifestFor(t);
    const run = await manifest.beginRun("run");
    await manifest.beginList();
    const add = (from: number) => manifest.works.add(run, works(from + 10).slice(from), IS_PRESENT);
    // The server has one lock for each savepoint that was not released, and a limited number of locks.
    const locks = async () =>
      (await server.query("SELECT count(*)::integer AS locks FROM pg_locks WHERE locktype = 'transactionid'"))[0];
    await add(0);
    const before = await locks();
    for (let batch = 1; batch < 10; batch += 1) await add(batch * 10);
    assert.deepEqual(await locks(), before);
    await manifest.commitList();
    assert.equal((await manifest.reports.report()).works.total, 100);
  });

  test("two processes that list the same works at the same time add each of them once", async t => {
    const url = server.url();
    const manifests = [await manifestFor(t, url), await manifestFor(t, url)];
    await Promise.all(
      manifests.map(async manifest => {
        const run = await manifest.beginRun("run");
        for (let from = 0; from < 400; from += 50)
          await manifest.works.add(run, works(400).slice(from, from + 50), IS_PRESENT);
      }),
    );
    assert.equal((await manifests[0]?.reports.report())?.works.total, 400);
  });

  test("workers whose clocks differ agree when a work may start", async t => {
    const url = server.url();
    class WrongTime extends SystemTime {
      override wallMs() {
        return super.wallMs() + 7_200_000;
      }
    }
    const ahead = await PostgresManifest.open(url, new WrongTime());
    t.after(() => ahead.close());
    const other = await manifestFor(t, url);
    const run = await ahead.beginRun("run", "{}");
    await other.joinRun(run);
    const differenceMs = ahead.queue.nowMs() - other.queue.nowMs();
    assert.ok(Math.abs(differenceMs) < 3_600_000, `${differenceMs}`);
  });

  test("two processes that find out that their works are one merge them once", async t => {
    const url = server.url();
    const [first, second] = [await manifestFor(t, url), await manifestFor(t, url)];
    const run = await first.beginRun("run", "{}");
    await second.joinRun(run);
    const listed: readonly Work[] = [
      { key: "doi:10.1/a", ids: { doi: "10.1/a" } },
      { key: "pmid:1", ids: { pmid: "1" } },
    ];
    await first.works.add(run, listed, IS_PRESENT);
    const ids = { doi: "10.1/a", pmid: "1" };
    const [a = 0] = await taken(first, run, 1);
    const [b = 0] = await taken(second, run, 1);
    const one = { id: a, key: "doi:10.1/a", ids };
    const other = { id: b, key: "pmid:1", ids };
    assert.equal(await first.works.update(one), b);
    assert.equal(await second.works.update(other), a);
    const merged = await Promise.all([first.works.merge(one, b, IS_PRESENT), second.works.merge(other, a, IS_PRESENT)]);
    assert.deepEqual(merged.toSorted(), ["merged", "outdated"]);
    const [manifest, left] = merged[0] === "merged" ? [second, other] : [first, one];
    assert.equal(await manifest.works.update(left), undefined);
    await manifest.finish(run, left.id, "ok", FILE);
    assert.deepEqual((await first.reports.report()).works, { total: 1, done: 1, failed: 0, pending: 0, merged: 1 });
  });

  test("the same bytes that two processes store at the same time are one file", async t => {
    const url = server.url();
    const [first, second] = [await manifestFor(t, url), await manifestFor(t, url)];
    const run = await first.beginRun("run", "{}");
    await second.joinRun(run);
    await first.works.add(run, works(3), IS_PRESENT);
    const [a = 0, c = 0] = await taken(first, run, 2);
    const [b = 0] = await taken(second, run, 1);
    assert.equal((await first.finish(run, a, "ok", FILE)).file.path, "a.pdf");
    assert.equal((await second.finish(run, b, "ok", { ...FILE, path: "b.pdf" })).file.path, "a.pdf");
    // The file is missing on the disk, and was downloaded again to another path.
    const again = { ...FILE, path: "c.pdf", replaces: "a.pdf" };
    assert.equal((await first.finish(run, c, "ok", again)).file.path, "c.pdf");
  });

  test("operations wait for a server that restarts, and each takes effect once", async t => {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    const manifest = await manifestFor(t, own.url());
    const run = await manifest.beginRun("run", "{}");
    await manifest.works.add(run, works(200), IS_PRESENT);
    const ids = await taken(manifest, run, 200);
    let recorded = 0;
    const halfway = Promise.withResolvers<void>();
    const attempt = { step: "ask", resolver: "r", url: "https://x.example/", reason: "found", elapsedMs: 1 } as const;
    const all = Promise.all(
      ids.map(async id => {
        await manifest.recordAttempt(run, id, attempt);
        await manifest.fail(id, "no-copy", undefined);
        if (++recorded === 50) halfway.resolve();
      }),
    );
    await halfway.promise;
    await own.kill();
    await own.start();
    await all;
    assert.deepEqual((await manifest.reports.report()).works, {
      total: 200,
      done: 0,
      failed: 200,
      pending: 0,
      merged: 0,
    });
    const attempts: number[] = [];
    for await (const line of manifest.reports.attemptLines()) attempts.push(JSON.parse(line).attempts.length);
    assert.deepEqual(attempts, Array(200).fill(1));
  });

  test("operations that wait for a server fail with a StoreError after stopWaiting", async t => {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    const manifest = await manifestFor(t, own.url());
    await manifest.beginRun("run", "{}");
    await own.kill();
    const report = manifest.reports.report();
    manifest.stopWaiting();
    await assert.rejects(report, {
      name: "StoreError",
      message: /cannot reach the manifest postgres:\/\/127\.0\.0\.1:/,
    });
  });

  test("a robots.txt that the server does not give within a second counts as not kept", async t => {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    const time = new FakeTime();
    const url = own.url({ schema: "slow" });
    const { robots } = await manifestFor(t, url, time);
    await robots.save("https://a.example", { status: 404, text: "" });
    const locked = own.query("BEGIN; LOCK TABLE slow.robots; SELECT pg_sleep(60)").catch(() => undefined);
    while ((await own.query("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock'")).length === 0);
    const found = robots.find("https://a.example");
    await time.advance(1000);
    assert.equal(await found, undefined);
    await own.query("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE mode = 'AccessExclusiveLock'");
    await locked;
    await own.kill();
    assert.equal(await robots.find("https://a.example"), undefined);
    await own.start();
    assert.equal((await robots.find("https://a.example"))?.status, 404);
  });

  test("a schema of another program, a newer manifest and a wrong address are errors without the password", async () => {
    const url = server.url({ schema: "theirs" });
    await server.query("CREATE SCHEMA theirs; CREATE TABLE theirs.notes (x integer)");
    await assert.rejects(PostgresManifest.open(url, systemTime), /the schema theirs has tables of another program/);
    const newer = server.url({ schema: "newer" });
    await (await PostgresManifest.open(newer, systemTime)).close();
    await server.query("UPDATE newer.docstokg_manifest SET version = 99");
    await assert.rejects(PostgresManifest.open(newer, systemTime), /format version 99, but this version .* up to 6/);
    assert.equal(await PostgresManifest.find(server.url(), systemTime), undefined);
    for (const wrong of [
      `postgres://someone:hunter2@127.0.0.1:${server.port}/postgres`,
      `postgres://docstokg:hunter2@127.0.0.1:${server.port}/nothere`,
      "postgres://docstokg:hunter2@127.0.0.1/",
      "postgres://docstokg:hunter2@127.0.0.1/x?schema=No!",
      "postgres://docstokg:hunter2@127.0.0.1/x?lease_s=0",
      "postgres://docstokg:p@127.0.0.1:1/hunter2@127.0.0.1/x",
    ])
      await assert.rejects(PostgresManifest.open(wrong, systemTime), error => {
        assert.ok(error instanceof Error);
        assert.equal(error.name, "ConfigError");
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      });
    // It may be reached later, so this is not an error of the configuration.
    await assert.rejects(PostgresManifest.open("postgres://docstokg:hunter2@127.0.0.1:1/postgres", systemTime), {
      name: "StoreError",
      message: /^cannot reach the manifest postgres:\/\/127\.0\.0\.1:1\/postgres: /,
    });
  });

  test("a role that may only read and write rows uses a manifest that another role has created", async t => {
    const url = server.url({ schema: "shared" });
    await (await PostgresManifest.open(url, systemTime)).close();
    await server.query(`
      CREATE ROLE worker LOGIN;
      GRANT USAGE ON SCHEMA shared TO worker;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shared TO worker`);
    const manifest = await manifestFor(t, server.url({ schema: "shared", user: "worker" }));
    const run = await manifest.beginRun("run", "{}");
    await manifest.works.add(run, works(3), IS_PRESENT);
    for (const id of await taken(manifest, run)) await manifest.finish(run, id, "ok", FILE);
    await manifest.endRun(run, "ended");
    assert.equal((await manifest.reports.report()).runs[0]?.state, "ended");
    await assert.rejects(server.query("CREATE TABLE shared.more (x integer)", "worker"), /permission denied/);
  });
});
