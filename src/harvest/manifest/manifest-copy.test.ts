import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Work } from "../work.ts";
import { type Manifest, type ManifestLock, openManifest, readManifest } from "./manifest.ts";
import { copyManifest } from "./manifest-copy.ts";
import type { TablePage } from "./manifest-tables.ts";

/** Every row of a manifest, in any order. */
async function rowsOf(manifest: Manifest): Promise<readonly string[]> {
  const rows: string[] = [];
  for await (const { table, rows: page } of manifest.tables.read())
    for (const row of page) rows.push(`${table} ${JSON.stringify(Object.entries(row).toSorted())}`);
  return rows.toSorted();
}

/** 2,500 works in several states, of which a later one has an earlier one merged into it. */
async function fill(manifest: Manifest): Promise<void> {
  const run = await manifest.beginRun("run --input 'x'");
  const works: readonly Work[] = Array.from({ length: 2500 }, (_, index) => ({
    ...{ key: `doi:10.1/${index}`, ids: { doi: `10.1/${index}` } },
    ...(index === 3 ? { metadata: { title: "A \u{1F4C4} 'title'\\", year: 2020 } } : {}),
  }));
  await manifest.works.add(run, works, { isPresent: () => true });
  const [first, second, third, fourth] = await manifest.queue.take(run, "", systemTime.wallMs(), 4);
  assert.ok(first && second && third && fourth);
  await manifest.recordAttempt(run, first.work.id, {
    ...{ step: "fetch", resolver: "openalex", url: "https://x.example/a.pdf", status: 200, reason: "ok", elapsedMs: 3 },
  });
  await manifest.finish(run, first.work.id, "ok", {
    ...{ sha256: "ab".repeat(32), path: "a.pdf", bytes: 10, mediaType: "application/pdf", flag: "no-eof" },
    ...{ urlHash: "00", url: "https://x.example/a.pdf", resolver: "openalex", licence: "cc-by", etag: '"1"' },
  });
  await manifest.works.merge(second.work, 2400, { isPresent: () => true, progress: "half" });
  await manifest.fail(third.work.id, "network", "lost", '{"steps":[]}');
  await manifest.files.savePart({
    ...{ urlHash: "11", work: fourth.work.id, file: "x.part", validator: '"2"', totalBytes: 5 },
    destination: undefined,
  });
  await manifest.endRun(run, "ended");
}

test("a copy that is refused leaves no manifest locked", async t => {
  const folder = temporaryFolder("harvest");
  const [from, to] = [
    await openManifest(join(folder, "1.sqlite"), systemTime),
    await openManifest(join(folder, "2.sqlite"), systemTime),
  ];
  t.after(() => Promise.all([from.close(), to.close()]));
  const lock = await to.tryLock();
  assert.ok(lock);
  await assert.rejects(copyManifest(from, to), /a run uses the manifest .*2\.sqlite; wait until the run ends/);
  assert.equal(await from.isInUse(), false);
  lock.release();
});

test("a copy does not lock its source, and is given up if a run begins to use the source meanwhile", async t => {
  const folder = temporaryFolder("harvest");
  const path = join(folder, "1.sqlite");
  const filled = await openManifest(path, systemTime);
  await fill(filled);
  t.after(() => filled.close());
  const from = await readManifest(path, systemTime);
  const to = await openManifest(join(folder, "2.sqlite"), systemTime);
  t.after(() => Promise.all([from?.close(), to.close()]));
  assert.ok(from);
  const rows = await rowsOf(filled);
  let lock: ManifestLock | undefined;
  let endsBeforeCopy = false;
  const write = to.tables.write.bind(to.tables);
  t.mock.method(to.tables, "write", async (pages: AsyncIterable<TablePage>) => {
    // A run that begins during the copy.
    lock = await filled.tryLock();
    assert.ok(lock, "the source is not locked");
    await filled.works.add(await filled.beginRun("run"), [{ key: "url:x", ids: {} }], { isPresent: () => true });
    if (endsBeforeCopy) lock.release();
    await write(pages);
  });
  await assert.rejects(copyManifest(from, to), /a run uses the manifest .*1\.sqlite; wait until the run ends/);
  assert.deepEqual(await rowsOf(to), []);
  lock?.release();
  endsBeforeCopy = true;
  assert.equal((await copyManifest(from, to)).works, 2501);
  assert.notDeepEqual(await rowsOf(to), rows);
});

test("a copy is given up if a run begins and ends while the source is read", async t => {
  const folder = temporaryFolder("harvest");
  const path = join(folder, "1.sqlite");
  const filled = await openManifest(path, systemTime);
  await fill(filled);
  const from = await readManifest(path, systemTime);
  const to = await openManifest(join(folder, "2.sqlite"), systemTime);
  t.after(() => Promise.all([filled.close(), from?.close(), to.close()]));
  assert.ok(from);
  const read = from.tables.read.bind(from.tables);
  const reading = t.mock.method(from.tables, "read", async function* () {
    let isFirst = true;
    for await (const page of read()) {
      yield page;
      if (isFirst) await filled.endRun(await filled.beginRun("run"), "ended");
      isFirst = false;
    }
  });
  await assert.rejects(
    copyManifest(from, to),
    /a run has used the manifest .*1\.sqlite during the copy; copy it again/,
  );
  assert.deepEqual(await rowsOf(to), []);
  reading.mock.restore();
  assert.equal((await copyManifest(from, to)).runs, 2);
});

describe("copying a manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  test("a copy from a file to PostgreSQL and back to a file has every row, and continues after it", async t => {
    const folder = temporaryFolder("harvest");
    const names = [join(folder, "1.sqlite"), server.url(), join(folder, "2.sqlite"), server.url()];
    const manifests: Manifest[] = [];
    for (const name of names) {
      const manifest = await openManifest(name, systemTime);
      t.after(() => manifest.close());
      manifests.push(manifest);
    }
    const [file, postgres, back, again] = manifests;
    assert.ok(file && postgres && back && again);
    await fill(file);
    const copied = await copyManifest(file, postgres);
    assert.deepEqual(
      [copied.works, copied.runs, copied.attempts, copied.parts, copied.work_ids, copied.files],
      [2500, 1, 1, 1, 2500, 1],
    );
    await copyManifest(postgres, back);
    await copyManifest(back, again);
    const rows = await rowsOf(file);
    assert.deepEqual(await rowsOf(postgres), rows);
    assert.deepEqual(await rowsOf(back), rows);
    assert.deepEqual(await rowsOf(again), rows);
    for (const manifest of [postgres, back]) {
      const run = await manifest.beginRun("retry", "{}");
      assert.equal(run, 2);
      assert.equal(await manifest.works.addUnfinished(run, "all", true), 2498);
      const added = await manifest.works.add(run, [{ key: "doi:10.2/new", ids: { doi: "10.2/new" } }], {
        isPresent: () => true,
      });
      assert.equal(added.pending, 1);
      await manifest.endRun(run, "interrupted");
    }
    await assert.rejects(copyManifest(file, postgres), /already has works or runs; copy to an empty manifest/);
  });

  test("a manifest that a run uses is not copied", async t => {
    const from = await openManifest(server.url(), systemTime);
    t.after(() => from.close());
    await from.beginRun("run", "{}");
    const to = await openManifest(join(temporaryFolder("harvest"), "m.sqlite"), systemTime);
    t.after(() => to.close());
    await assert.rejects(
      copyManifest(from, to),
      /a run uses the manifest postgres:\/\/127\.0\.0\.1:\d+\/postgres\?schema=/,
    );
  });
});
