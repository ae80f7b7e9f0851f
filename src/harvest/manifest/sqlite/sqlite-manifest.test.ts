import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { manifestContract } from "../../../../test/harvest/manifest-contract.ts";
import { temporaryFolder } from "../../../../test/temporary-folder.ts";
import { systemTime } from "../../../time/system-time.ts";
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
