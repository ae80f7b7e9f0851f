import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { manifestContract } from "../../../../test/harvest/manifest-contract.ts";
import { temporaryFolder } from "../../../../test/temporary-folder.ts";
import { DownloadError } from "../../../errors.ts";
import { systemTime } from "../../../time/system-time.ts";
import { TABLE_NAMES } from "../manifest-tables.ts";
import { SqliteManifest } from "./sqlite-manifest.ts";

function fileFor(): string {
  const folder = temporaryFolder("manifest");
  return join(folder, "manifest.sqlite");
}

async function manifestFor(t: TestContext): Promise<SqliteManifest> {
  const manifest = await SqliteManifest.open(fileFor(), systemTime);
  t.after(() => manifest.close());
  return manifest;
}

manifestContract(manifestFor);

test("a killed run is marked as interrupted by the next run", async t => {
  const manifest = await manifestFor(t);
  const killed = await manifest.beginRun("run");
  const ended = await manifest.beginRun("run");
  await manifest.endRun(ended, "ended");
  assert.deepEqual(
    (await manifest.reports.report()).runs.map(({ id, state }) => [id, state]),
    [
      [ended, "ended"],
      [killed, "interrupted"],
    ],
  );
});

test("if a run cannot begin, the run before and its works stay as they were", async t => {
  const manifest = await manifestFor(t);
  const killed = await manifest.beginRun("run");
  await manifest.works.add(killed, [{ key: "pmid:1", ids: { pmid: "1" } }], { isPresent: () => true });
  assert.equal((await manifest.queue.take(killed, "", systemTime.wallMs(), 1)).length, 1);
  const rows = () => manifest.db.prepare("SELECT runs.state, taken_by FROM runs, works").all();
  const before = rows();
  manifest.db.exec("CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'disk full'); END");
  await assert.rejects(manifest.beginRun("run"), /disk full/);
  assert.deepEqual(rows(), before);
  manifest.db.exec("DROP TRIGGER full");
  assert.notEqual(await manifest.beginRun("run"), killed);
});

test("unfinished and failed works are added to a run together, or none of them", async t => {
  const manifest = await manifestFor(t);
  const first = await manifest.beginRun("run");
  const works = ["1", "2"].map(pmid => ({ key: `pmid:${pmid}`, ids: { pmid } }));
  await manifest.works.add(first, works, { isPresent: () => true });
  const [taken] = await manifest.queue.take(first, "", systemTime.wallMs(), 1);
  await manifest.fail(taken?.work.id ?? 0, "network", undefined);
  const second = await manifest.beginRun("retry");
  const runs = () =>
    manifest.db
      .prepare("SELECT run FROM works")
      .all()
      .map(({ run }) => run);
  manifest.db.exec(
    `CREATE TRIGGER full BEFORE UPDATE ON works WHEN OLD.state = 'failed' BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
  );
  await assert.rejects(manifest.works.addUnfinished(second, "all", false), /disk full/);
  assert.deepEqual(runs(), [first, first]);
  manifest.db.exec("DROP TRIGGER full");
  await manifest.beginList();
  assert.equal(await manifest.works.addUnfinished(second, "all", false), 2, "also within the transaction of a list");
  await manifest.commitList();
  assert.deepEqual(runs(), [second, second]);
});

test("a file that is not a manifest is an error and is not changed", async () => {
  const path = fileFor();
  writeFileSync(path, "my notes, not a database; long enough to be looked at as one");
  await assert.rejects(SqliteManifest.open(path, systemTime), {
    name: "ConfigError",
    message: /cannot use .* as manifest: the file is damaged or not a SQLite database; the file was not changed/,
  });
  assert.match(readFileSync(path, "utf8"), /^my notes/);
  const other = fileFor();
  const foreign = new DatabaseSync(other);
  foreign.exec("CREATE TABLE theirs (x)");
  foreign.close();
  const before = readFileSync(other);
  await assert.rejects(SqliteManifest.open(other, systemTime), /the file is a database of another program/);
  assert.deepEqual(readFileSync(other), before);
});

test("a manifest that lacks a table or a column is an error that names it, and is not changed", async () => {
  for (const [sql, why] of [
    ...TABLE_NAMES.map(table => [`DROP TABLE ${table}`, `the table ${table} is missing`] as const),
    ["ALTER TABLE attempts DROP COLUMN elapsed_ms", "table attempts has no column named elapsed_ms"],
  ] as const) {
    const path = fileFor();
    await (await SqliteManifest.open(path, systemTime)).close();
    const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    database.exec(sql);
    database.close();
    const before = readFileSync(path);
    const expected = {
      name: "ConfigError",
      message: `--manifest: cannot use ${path} as manifest: ${why}; restore the file from a copy, or choose another with --manifest`,
    };
    await assert.rejects(SqliteManifest.open(path, systemTime), expected);
    await assert.rejects(SqliteManifest.read(path, systemTime), expected);
    assert.deepEqual(readFileSync(path), before);
  }
});

test("an error of SQLite says whether the manifest could not be read or not be written", async t => {
  const path = fileFor();
  await (await SqliteManifest.open(path, systemTime)).close();
  const manifest = await SqliteManifest.open(path, systemTime);
  const reader = await SqliteManifest.read(path, systemTime);
  t.after(() => Promise.all([manifest.close(), reader.close()]));
  const errorOf = async (from: SqliteManifest, action: () => Promise<unknown>) => {
    const error = await action().then(
      () => undefined,
      cause => from.errorFrom(cause),
    );
    assert.ok(error instanceof DownloadError);
    return error.message;
  };
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  manifest.db.exec("PRAGMA busy_timeout = 0");
  other.exec("BEGIN IMMEDIATE");
  const begin = () => manifest.beginRun("run");
  assert.equal(await errorOf(manifest, begin), `cannot write the manifest ${path}: database is locked`);
  other.exec("DROP TABLE work_ids; DROP TABLE work_files; DROP TABLE attempts; COMMIT");
  const report = (from: SqliteManifest) => () => from.reports.report();
  for (const from of [manifest, reader])
    assert.equal(await errorOf(from, report(from)), `cannot read the manifest ${path}: no such table: work_files`);
  const unknown = new Error("of no database");
  assert.equal(manifest.errorFrom(unknown), unknown);
});

test("one run at a time holds the lock of a manifest", async t => {
  const manifest = await manifestFor(t);
  const first = await manifest.tryLock();
  assert.ok(first);
  assert.equal(await manifest.tryLock(), undefined);
  first.release();
  const second = await manifest.tryLock();
  assert.ok(second);
  second.release();
});

test("merging a work reads the identifiers of that work alone", async t => {
  const { db } = await manifestFor(t);
  const plan = db.prepare("EXPLAIN QUERY PLAN UPDATE work_ids SET work = 1 WHERE work = 2").all();
  assert.deepEqual(
    plan.map(({ detail }) => detail),
    ["SEARCH work_ids USING COVERING INDEX work_ids_by_work (work=?)"],
  );
});

test("a result is not recorded in a manifest that was deleted or replaced", async t => {
  const manifest = await manifestFor(t);
  const run = await manifest.beginRun("run");
  const isPresent = () => false;
  await manifest.works.add(run, [{ key: "doi:10.1/a", ids: { doi: "10.1/a" } }], { isPresent });
  const [taken] = await manifest.queue.take(run, "", systemTime.wallMs(), 1);
  const work = taken?.work.id ?? assert.fail();
  rmSync(manifest.name);
  const lost = {
    name: "DownloadError",
    message: /^the manifest .*manifest\.sqlite was deleted or replaced while the run/,
  };
  await assert.rejects(manifest.fail(work, "no-copy", undefined), lost);
  const other = await SqliteManifest.open(manifest.name, systemTime);
  t.after(() => other.close());
  await assert.rejects(manifest.complete(work, "ok"), lost);
  await assert.rejects(manifest.endRun(run, "ended"), lost);
});
