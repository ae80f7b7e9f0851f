/** What every backend keeps of stored and partial files. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../src/files/file-hash.ts";
import type { DownloadedFile, PartialDownload } from "../../src/harvest/manifest/manifest-files.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { added, DOWNLOADED, IS_PRESENT, type OpenManifest, taken, takenOne, works } from "./manifest-kit.ts";

export function filesContract(open: OpenManifest): void {
  test("a finished work has its file, its source and no partial files", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const { id } = await takenOne(manifest, run);
    const part: PartialDownload = {
      ...{ urlHash: DOWNLOADED.urlHash, work: id, file: "1.part", validator: '"1"', totalBytes: 10 },
      destination: undefined,
    };
    await manifest.files.savePart(part);
    const known = (urlHash: string) => manifest.files.knownDownload(urlHash, id);
    assert.deepEqual(await known(part.urlHash), { source: undefined, part, ofWork: [] });
    const move = { ...part, validator: undefined, totalBytes: undefined, destination: DOWNLOADED };
    assert.equal(await manifest.files.savePart(move), undefined);
    assert.deepEqual((await known(part.urlHash)).part?.destination, DOWNLOADED);
    await manifest.files.savePart({ ...part, urlHash: "other", file: "2.part" });
    await manifest.files.savePart({ ...part, urlHash: "third", file: "3.part" });
    await manifest.files.deletePart("other", id);
    assert.equal((await known("other")).part, undefined);
    assert.equal((await known("third")).part?.file, "3.part");
    const { sha256, path, bytes, mediaType } = DOWNLOADED;
    assert.equal(await manifest.files.file(sha256), undefined);
    const finished = await manifest.finish(run, id, "ok", { ...DOWNLOADED, licence: "cc-by", version: "published" });
    assert.equal(finished.file.path, path);
    assert.deepEqual([...finished.parts].sort(), ["1.part", "3.part"]);
    const stored = { sha256, path, bytes, mediaType };
    assert.deepEqual(await manifest.files.file(sha256), stored);
    const source = { file: stored, etag: '"1"', lastModified: undefined, run };
    assert.deepEqual(await known(DOWNLOADED.urlHash), { source, part: undefined, ofWork: [stored] });
    assert.deepEqual(await known("unknown"), { source: undefined, part: undefined, ofWork: [stored] });
    const { licence, version, files, reason } = await manifest.reports.workRecord(id);
    assert.deepEqual([licence, version, reason, files.length], ["cc-by", "published", "ok", 1]);
  });

  test("each work that downloads a URL has its own partial file, and ends without those of others", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c"));
    const [a, b, c] = await taken(manifest, run);
    assert.ok(a && b && c);
    const { urlHash } = DOWNLOADED;
    const record = { urlHash, validator: '"1"', totalBytes: 10, destination: undefined };
    for (const { id } of [a, b, c]) {
      assert.equal((await manifest.files.knownDownload(urlHash, id)).part, undefined);
      await manifest.files.savePart({ ...record, work: id, file: `${id}.part` });
    }
    await manifest.files.deletePart(urlHash, a.id);
    assert.deepEqual((await manifest.finish(run, a.id, "ok", DOWNLOADED)).parts, []);
    assert.deepEqual((await manifest.finish(run, b.id, "ok", { ...DOWNLOADED, ofSeveral: "main" })).parts, [
      `${b.id}.part`,
    ]);
    assert.equal((await manifest.files.knownDownload(urlHash, c.id)).part?.file, `${c.id}.part`);
  });

  test("partial files of a work that is complete or merged are forgotten, and those of a failed work are kept", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [complete, merged, failed, pending] = await taken(manifest, run);
    assert.ok(complete && merged && failed && pending);
    const record = { urlHash: "x", validator: '"1"', totalBytes: 10, destination: undefined };
    const all = [complete, merged, failed, pending];
    for (const { id } of all) await manifest.files.savePart({ ...record, work: id, file: `${id}.part` });
    await manifest.complete(complete.id, "ok");
    assert.equal((await manifest.files.knownDownload("x", complete.id)).part, undefined);
    assert.equal(await manifest.works.merge(merged, pending.id, IS_PRESENT), "merged");
    await manifest.fail(failed.id, "network", undefined);
    await manifest.recover(async () => undefined);
    const left = await Promise.all(all.map(async ({ id }) => (await manifest.files.knownDownload("x", id)).part?.work));
    assert.deepEqual(left, [undefined, undefined, failed.id, pending.id]);
  });

  for (const ofSeveral of [undefined, "main"] as const)
    test(`a file of the same work with other bytes at the same path replaces a missing one${ofSeveral ? ", of several" : ""}`, async t => {
      const manifest = await open(t);
      const first = await manifest.beginRun("run");
      await added(manifest, first, works("a"));
      const { id } = await takenOne(manifest, first);
      const supplement = {
        ...DOWNLOADED,
        sha256: "ef".repeat(32),
        path: "a.zip",
        role: "supplement",
        url: "x",
      } as const;
      await manifest.finish(first, id, "ok", { ...supplement, ofSeveral: "further" });
      await manifest.finish(first, id, "ok", DOWNLOADED);
      const second = await manifest.beginRun("run");
      await added(manifest, second, works("a"), () => false);
      await takenOne(manifest, second);
      const revised = { ...DOWNLOADED, sha256: "cd".repeat(32), ofSeveral };
      await manifest.finish(second, id, "ok", revised);
      if (ofSeveral !== undefined) await manifest.complete(id, "ok");
      const files = (await manifest.reports.workRecord(id)).files.map(({ path, sha256 }) => `${path} ${sha256}`);
      assert.deepEqual(files, [`${DOWNLOADED.path} ${revised.sha256}`, `${supplement.path} ${supplement.sha256}`]);
      assert.equal((await manifest.reports.storedFiles()).length, 2);
    });

  test("a work with several files is pending until it is complete, and is known by its main file", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const work = await takenOne(manifest, run);
    const urlHash = (name: string) => sha256Of(`https://x.example/${name}`);
    const file = (name: string, fields: Partial<DownloadedFile>): DownloadedFile => ({
      ...{ ...DOWNLOADED, sha256: sha256Of(name), path: name, urlHash: urlHash(name) },
      ...{ url: `https://x.example/${name}`, ...fields },
    });
    const part = { work: work.id, file: "x.part", validator: '"1"', totalBytes: 5, destination: undefined };
    await manifest.files.savePart({ ...part, urlHash: urlHash("data.zip") });
    await manifest.finish(run, work.id, "ok", file("a.xml", { mediaType: "application/xml", ofSeveral: "main" }));
    assert.deepEqual((await manifest.finish(run, work.id, "ok", file("a.pdf", { ofSeveral: "main" }))).parts, []);
    const zip = { mediaType: "application/zip", role: "supplement", ofSeveral: "further" } as const;
    assert.deepEqual((await manifest.finish(run, work.id, "ok", file("data.zip", zip))).parts, ["x.part"]);
    // The same bytes as the article stay the article; other bytes from the same URL replace the supplement.
    await manifest.finish(run, work.id, "duplicate", file("a.pdf", { ...zip, path: "a.pdf" }));
    await manifest.finish(
      run,
      work.id,
      "ok",
      file("data.zip", { ...zip, sha256: "cd".repeat(32), path: "data~2.zip" }),
    );
    await manifest.saveProgress(work.id, "x.example artifact", "so far");
    assert.equal(await manifest.works.stateOf(work), "pending");
    assert.deepEqual((await manifest.reports.workRecord(work.id)).files, []);
    await manifest.queue.putOff(work.id, { queue: "", notBeforeMs: 0, progress: "so far" });
    assert.equal((await manifest.queue.take(run, "", systemTime.wallMs(), 1))[0]?.progress, "so far");

    await manifest.complete(work.id, "ok", "1 further file could not be downloaded: source: status 404");
    const record = await manifest.reports.workRecord(work.id);
    assert.equal(record.state, "done");
    assert.deepEqual(
      record.files.map(({ path, role, mediaType }) => [path, role, mediaType]),
      [
        ["a.pdf", "article", "application/pdf"],
        ["a.xml", "article", "application/xml"],
        ["data~2.zip", "supplement", "application/zip"],
      ],
    );
    assert.equal(record.url, "https://x.example/a.pdf");
    assert.equal((await manifest.reports.storedFiles()).length, 3);
    assert.equal((await manifest.reports.report()).files.count, 3);
    assert.deepEqual(
      (await manifest.reports.fileKinds()).map(({ role, mediaType, files, maxBytes }) => [
        role,
        mediaType,
        files,
        maxBytes,
      ]),
      [
        ["article", "application/pdf", 1, 10],
        ["article", "application/xml", 1, 10],
        ["supplement", "application/zip", 1, 10],
      ],
    );
    assert.equal(await manifest.works.reopen(["cd".repeat(32)]), 1);
  });

  test("a new file of a work displaces the file that had its path", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const { id } = await takenOne(manifest, run);
    await manifest.finish(run, id, "ok", DOWNLOADED);
    const displaced = { sha256: DOWNLOADED.sha256, path: "doi_10.1_a-2.pdf" };
    await manifest.works.add(await manifest.beginRun("run"), works("a"), { isPresent: () => true, isRefresh: true });
    await manifest.queue.takeLater(2, 0, [""], 1);
    await manifest.finish(2, id, "ok", { ...DOWNLOADED, sha256: "cd".repeat(32), flag: "no-eof", displaced });
    assert.deepEqual(
      (await manifest.files.knownDownload("", id)).ofWork.map(({ path, flag }) => [path, flag]),
      [[DOWNLOADED.path, "no-eof"]],
    );
    assert.equal((await manifest.files.file(DOWNLOADED.sha256))?.path, displaced.path);
  });

  test("the file that has the same bytes is returned before another one is moved to its path", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    await manifest.finish(run, a.id, "ok", DOWNLOADED);
    const part = { urlHash: "other", work: b.id, file: "b.part", validator: undefined, totalBytes: undefined };
    const destination = { ...DOWNLOADED, path: "b.pdf" };
    assert.equal((await manifest.files.savePart({ ...part, destination }))?.path, DOWNLOADED.path);
    assert.equal(await manifest.files.savePart({ ...part, destination: { ...destination, sha256: "cd" } }), undefined);
    assert.equal(await manifest.files.savePart({ ...part, destination: undefined }), undefined);
  });

  test("works of lost files are pending again, and their source is forgotten", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    for (const { id } of await taken(manifest, run)) await manifest.finish(run, id, "ok", DOWNLOADED);
    assert.deepEqual(await manifest.reports.storedFiles(), [
      { path: DOWNLOADED.path, role: "article", sha256: DOWNLOADED.sha256, bytes: 10, works: 2 },
    ]);
    assert.equal(await manifest.works.reopen([DOWNLOADED.sha256, "unknown"]), 2);
    assert.equal((await manifest.files.knownDownload(DOWNLOADED.urlHash, 0)).source, undefined);
    assert.deepEqual(await manifest.reports.storedFiles(), []);
    assert.equal((await taken(manifest, run)).length, 2);
  });
}
