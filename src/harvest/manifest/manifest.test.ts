import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { sha256Of } from "../../files/file-hash.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Work } from "../work.ts";
import { type ListedWork, type Manifest, openManifest } from "./manifest.ts";
import { lockManifest } from "./manifest-file.ts";
import type { DownloadedFile } from "./manifest-files.ts";
import { exportLines, reportOf } from "./manifest-report.ts";

function fileFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-manifest-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "manifest.sqlite");
}

async function manifestFor(t: TestContext, path = fileFor(t)): Promise<Manifest> {
  const manifest = await openManifest(path, new FakeTime());
  t.after(() => manifest.close());
  return manifest;
}

const works = (...names: readonly string[]): readonly Work[] =>
  names.map(name => ({ key: `doi:10.1/${name}`, ids: { doi: `10.1/${name}` } }));
const keys = (list: readonly Work[]) => list.map(({ key }) => key);

function added(
  manifest: Manifest,
  run: number,
  list: readonly Work[],
  isPresent: (sha256: string) => boolean = () => true,
) {
  const { pending, present, failed } = manifest.works.add(run, list, { isPresent });
  return { pending, present, failed };
}

function taken(manifest: Manifest, run: number, limit = 10): readonly ListedWork[] {
  return manifest.queue.take(run, "", 0, limit).map(({ work }) => work);
}

const DOWNLOADED: DownloadedFile = {
  sha256: "ab".repeat(32),
  path: "doi_10.1_a.pdf",
  bytes: 10,
  mediaType: "application/pdf",
  urlHash: sha256Of("https://x.example/a.pdf"),
  url: "https://x.example/a.pdf",
  resolver: "openalex",
  etag: '"1"',
};

test("a work that is listed twice is added once, at its first position", async t => {
  const manifest = await manifestFor(t);
  const run = manifest.beginRun("run");
  assert.deepEqual(added(manifest, run, works("a", "b", "a")), { pending: 2, present: 0, failed: 0 });
  assert.deepEqual(keys(taken(manifest, run)), ["doi:10.1/a", "doi:10.1/b"]);
});

test("another run resumes pending works, and skips done and failed ones", async t => {
  const manifest = await manifestFor(t);
  const first = manifest.beginRun("run");
  added(manifest, first, works("a", "b", "c"));
  const [a, b] = taken(manifest, first, 2);
  assert.ok(a && b);
  manifest.finish(first, a.id, "ok", DOWNLOADED);
  manifest.fail(b.id, "no-copy", undefined);
  const second = manifest.beginRun("run");
  assert.deepEqual(added(manifest, second, works("a", "b", "c")), { pending: 1, present: 1, failed: 1 });
  assert.deepEqual(keys(taken(manifest, second)), ["doi:10.1/c"]);
  assert.deepEqual(reportOf(manifest.db, second).works, { total: 3, done: 1, failed: 1, pending: 1, merged: 0 });
});

test("a work whose file is missing is pending again", async t => {
  const manifest = await manifestFor(t);
  const first = manifest.beginRun("run");
  added(manifest, first, works("a"));
  manifest.finish(first, 1, "ok", DOWNLOADED);
  const second = manifest.beginRun("run");
  assert.deepEqual(
    added(manifest, second, works("a"), () => false),
    { pending: 1, present: 0, failed: 0 },
  );
});

test("failed works are added on request, all of them or those of one reason", async t => {
  const manifest = await manifestFor(t);
  const first = manifest.beginRun("run");
  added(manifest, first, works("a", "b", "c"));
  for (const [index, { id }] of taken(manifest, first, 2).entries())
    manifest.fail(id, index === 0 ? "no-copy" : "network", undefined);
  assert.equal(manifest.works.addUnfinished(manifest.beginRun("retry"), [], true), 1);
  const second = manifest.beginRun("retry");
  assert.equal(manifest.works.addUnfinished(second, ["network"], false), 2);
  assert.deepEqual(keys(taken(manifest, second)), ["doi:10.1/b", "doi:10.1/c"]);
  assert.equal(manifest.works.addUnfinished(manifest.beginRun("retry"), "all", false), 3);
});

test("a rolled-back list leaves no works and changes no others", async t => {
  const manifest = await manifestFor(t);
  const earlier = manifest.beginRun("run");
  added(manifest, earlier, works("old"));
  const run = manifest.beginRun("run");
  manifest.beginList();
  added(manifest, run, works("old", "new"));
  manifest.rollbackList();
  assert.equal(reportOf(manifest.db).works.total, 1);
  assert.deepEqual(keys(taken(manifest, earlier)), ["doi:10.1/old"]);
  manifest.beginList();
  added(manifest, run, works("new"));
  manifest.commitList();
  manifest.endRun(run, "ended");
  assert.equal(reportOf(manifest.db).works.total, 2);
});

test("the export has every work with its attempts, and no secrets of URLs", async t => {
  const manifest = await manifestFor(t);
  const run = manifest.beginRun("run");
  added(manifest, run, works("a", "b"));
  const url = "https://x.example/a.pdf?token=s3cret";
  manifest.recordAttempt(run, 1, {
    step: "fetch",
    resolver: "openalex",
    url,
    status: 503,
    reason: "http-status",
    elapsedMs: 3,
  });
  manifest.recordAttempt(run, 1, {
    step: "fetch",
    resolver: "openalex",
    url,
    status: 200,
    reason: "ok",
    bytes: 10,
    elapsedMs: 4,
  });
  manifest.finish(run, 1, "ok", DOWNLOADED);
  const text = [...exportLines(manifest.db)].join("");
  assert.doesNotMatch(text, /s3cret/);
  const [a, b] = text
    .trimEnd()
    .split("\n")
    .map(line => JSON.parse(line));
  assert.deepEqual(
    [a.key, a.state, a.reason, a.ids, a.file.path],
    ["doi:10.1/a", "done", "ok", { doi: "10.1/a" }, DOWNLOADED.path],
  );
  assert.deepEqual(
    a.attempts.map((each: { status: number; reason: string }) => [each.status, each.reason]),
    [
      [503, "http-status"],
      [200, "ok"],
    ],
  );
  assert.deepEqual([b.state, b.file, b.attempts], ["pending", null, []]);
});

test("a killed run is marked as interrupted by the next run", async t => {
  const manifest = await manifestFor(t);
  const killed = manifest.beginRun("run");
  const ended = manifest.beginRun("run");
  manifest.endRun(ended, "ended");
  assert.deepEqual(
    reportOf(manifest.db).runs.map(({ id, state }) => [id, state]),
    [
      [ended, "ended"],
      [killed, "interrupted"],
    ],
  );
});

test("a file that is not a manifest is an error and is not changed", async t => {
  const path = fileFor(t);
  writeFileSync(path, "my notes, not a database; long enough to be looked at as one");
  await assert.rejects(openManifest(path, systemTime), {
    name: "ConfigError",
    message: /cannot use .* as manifest: the file is damaged or not a SQLite database; the file was not changed/,
  });
  assert.match(readFileSync(path, "utf8"), /^my notes/);
  const other = fileFor(t);
  const foreign = new DatabaseSync(other);
  foreign.exec("CREATE TABLE theirs (x)");
  foreign.close();
  const before = readFileSync(other);
  await assert.rejects(openManifest(other, systemTime), /the file is a database of another program/);
  assert.deepEqual(readFileSync(other), before);
});

test("one run at a time holds the lock of a manifest", async t => {
  const path = fileFor(t);
  const first = await lockManifest(path);
  assert.ok(first);
  assert.equal(await lockManifest(path), undefined);
  first.release();
  const second = await lockManifest(path);
  assert.ok(second);
  second.release();
});
