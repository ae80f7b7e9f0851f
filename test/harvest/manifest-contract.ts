/** What every backend of the manifest does. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { sha256Of } from "../../src/files/file-hash.ts";
import type { AttemptRecord, ListedWork, Manifest } from "../../src/harvest/manifest/manifest.ts";
import type { DownloadedFile, PartialDownload, StoredFile } from "../../src/harvest/manifest/manifest-files.ts";
import type { Work } from "../../src/harvest/work.ts";
import { systemTime } from "../../src/time/system-time.ts";

const HOUR_MS = 3_600_000;
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

const works = (...names: readonly string[]): readonly Work[] =>
  names.map(name => ({ key: `doi:10.1/${name}`, ids: { doi: `10.1/${name}` } }));
const keys = (list: readonly Work[]) => list.map(({ key }) => key);

async function added(
  manifest: Manifest,
  run: number,
  list: readonly Work[],
  isPresent: (file: StoredFile) => boolean = () => true,
) {
  const { pending, present, failed } = await manifest.works.add(run, list, { isPresent });
  return { pending, present, failed };
}

async function taken(manifest: Manifest, run: number, limit = 10, queue = ""): Promise<readonly ListedWork[]> {
  const all = await manifest.queue.take(run, queue, systemTime.wallMs(), limit);
  return all.map(({ work }) => work);
}

async function takenOne(manifest: Manifest, run: number): Promise<ListedWork> {
  const [work] = await taken(manifest, run, 1);
  assert.ok(work);
  return work;
}

const attempt = (fields: Partial<AttemptRecord>): AttemptRecord => ({
  ...{ step: "fetch", resolver: "openalex", url: "https://x.example/a.pdf", reason: "ok", elapsedMs: 3 },
  ...fields,
});

async function collected<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** @param open opens an empty manifest, and closes it after the test */
export function manifestContract(open: (t: TestContext) => Promise<Manifest>): void {
  test("a work that is listed twice is added once, at its first position", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    assert.deepEqual(await added(manifest, run, works("a", "b", "a")), { pending: 2, present: 0, failed: 0 });
    assert.deepEqual(await added(manifest, run, works("b")), { pending: 0, present: 0, failed: 0 });
    assert.deepEqual(keys(await taken(manifest, run)), ["doi:10.1/a", "doi:10.1/b"]);
  });

  test("a work that is listed under several identifiers is added once", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    const listed: readonly Work[] = [
      { key: "doi:10.1/a", ids: { doi: "10.1/a", pmid: "1" } },
      { key: "pmid:1", ids: { pmid: "1", pmcid: "PMC1" } },
      { key: "pmcid:PMC1", ids: { pmcid: "PMC1" } },
      { key: "url:https://x.example/", ids: { url: "https://x.example/" } },
      { key: "url:https://x.example/2", ids: { url: "https://x.example/2" } },
    ];
    assert.equal((await added(manifest, run, listed)).pending, 3);
    const later: readonly Work[] = [{ key: "pmcid:PMC1", ids: { pmcid: "PMC1" } }];
    assert.equal((await added(manifest, run, later)).pending, 0);
    assert.equal(await manifest.works.stateOf({ key: "pmcid:PMC1", ids: { pmcid: "PMC1" } }), "pending");
    assert.equal(await manifest.works.stateOf({ key: "pmid:2", ids: { pmid: "2" } }), undefined);
  });

  test("another run resumes pending works, and skips done and failed ones", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, works("a", "b", "c"));
    const [a, b] = await taken(manifest, first, 2);
    assert.ok(a && b);
    await manifest.finish(first, a.id, "ok", DOWNLOADED);
    await manifest.fail(b.id, "no-copy", undefined);
    await manifest.endRun(first, "interrupted");
    const second = await manifest.beginRun("run");
    assert.deepEqual(await added(manifest, second, works("a", "b", "c")), { pending: 1, present: 1, failed: 1 });
    assert.deepEqual(keys(await taken(manifest, second)), ["doi:10.1/c"]);
    const { works: counts } = await manifest.reports.report(second);
    assert.deepEqual(counts, { total: 3, done: 1, failed: 1, pending: 1, merged: 0 });
  });

  test("a work whose file is missing, or that is refreshed, is pending again", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, works("a"));
    await manifest.finish(first, (await takenOne(manifest, first)).id, "ok", DOWNLOADED);
    const asked: StoredFile[] = [];
    const isMissing = (file: StoredFile) => {
      asked.push(file);
      return false;
    };
    const second = await manifest.beginRun("run");
    assert.deepEqual(await added(manifest, second, works("a"), isMissing), { pending: 1, present: 0, failed: 0 });
    const { sha256, path, bytes, mediaType } = DOWNLOADED;
    assert.deepEqual(asked, [{ sha256, path, bytes, mediaType }]);
    await manifest.finish(second, (await takenOne(manifest, second)).id, "ok", DOWNLOADED);
    const third = await manifest.beginRun("run");
    const refreshed = await manifest.works.add(third, works("a"), { isPresent: () => true, isRefresh: true });
    assert.equal(refreshed.pending, 1);
  });

  test("failed works are added on request, all of them or those of one reason", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, works("a", "b", "c"));
    for (const [index, { id }] of (await taken(manifest, first, 2)).entries())
      await manifest.fail(id, index === 0 ? "no-copy" : "network", undefined, `progress of ${index}`);
    assert.equal(await manifest.works.addUnfinished(await manifest.beginRun("retry"), [], true), 1);
    const second = await manifest.beginRun("retry");
    assert.equal(await manifest.works.addUnfinished(second, ["network"], true), 2);
    const again = await manifest.queue.take(second, "", systemTime.wallMs(), 10);
    assert.deepEqual(
      again.map(({ work, progress }) => [work.key, progress]),
      [
        ["doi:10.1/b", "progress of 1"],
        ["doi:10.1/c", undefined],
      ],
    );
    for (const { work } of again)
      await manifest.queue.putOff(work.id, { queue: "", notBeforeMs: 0, progress: undefined });
    const third = await manifest.beginRun("retry");
    assert.equal(await manifest.works.addUnfinished(third, "all", false), 3);
    const all = await manifest.queue.take(third, "", systemTime.wallMs(), 10);
    assert.deepEqual(
      all.map(({ progress }) => progress),
      [undefined, undefined, undefined],
    );
  });

  test("a rolled-back list leaves no works and changes no others", async t => {
    const manifest = await open(t);
    const earlier = await manifest.beginRun("run");
    await added(manifest, earlier, works("old"));
    const run = await manifest.beginRun("run");
    await manifest.beginList();
    await added(manifest, run, works("old", "new"));
    await manifest.rollbackList();
    assert.equal((await manifest.reports.report()).works.total, 1);
    assert.deepEqual(keys(await taken(manifest, earlier)), ["doi:10.1/old"]);
    await manifest.beginList();
    await added(manifest, run, works("new"));
    await manifest.commitList();
    await manifest.endRun(run, "ended");
    assert.equal((await manifest.reports.report()).works.total, 2);
  });

  test("a list whose run ends before it is committed leaves no works", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await manifest.beginList();
    await added(manifest, run, works("a"));
    await manifest.endRun(run, "interrupted");
    assert.equal((await manifest.reports.report()).works.total, 0);
  });

  test("works wait in the queue of their next step, and a work is taken once", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    const queueOf = ({ key }: Work) => (key.endsWith("a") ? "one.example" : "two.example");
    const { queues } = await manifest.works.add(run, works("a", "b", "c"), { isPresent: () => true, queueOf });
    assert.deepEqual(
      queues,
      new Map([
        ["one.example", 1],
        ["two.example", 2],
      ]),
    );
    const waiting = await manifest.queue.waiting(run);
    assert.deepEqual(waiting.map(({ queue, works: count }) => [queue, count]).sort(), [
      ["one.example", 1],
      ["two.example", 2],
    ]);
    assert.deepEqual(keys(await taken(manifest, run, 1, "two.example")), ["doi:10.1/b"]);
    assert.deepEqual(keys(await taken(manifest, run, 5, "two.example")), ["doi:10.1/c"]);
    assert.deepEqual(keys(await taken(manifest, run, 5, "two.example")), []);
    assert.equal((await manifest.queue.waitingIn(run, "two.example")).works, 0);
    assert.equal((await manifest.queue.waitingIn(run, "one.example")).works, 1);
    const other = await manifest.beginRun("run");
    assert.deepEqual(await manifest.queue.waiting(other), []);
  });

  test("a work that is put off keeps its progress, and is not taken before its time", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    const nowMs = systemTime.wallMs();
    const later = { queue: "x.example", notBeforeMs: nowMs + HOUR_MS, progress: "half", message: "quota spent" };
    await manifest.queue.putOff(a.id, later);
    await manifest.queue.putOff(b.id, { queue: "x.example", notBeforeMs: 0, progress: undefined });
    assert.deepEqual(await manifest.queue.waitingIn(run, "x.example"), { works: 2, notBeforeMs: 0 });
    assert.deepEqual(keys(await taken(manifest, run, 10, "x.example")), ["doi:10.1/b"]);
    const { works: count, notBeforeMs } = await manifest.queue.waitingIn(run, "x.example");
    assert.equal(count, 1);
    assert.ok(Math.abs(notBeforeMs - later.notBeforeMs) < HOUR_MS / 2, `${notBeforeMs - nowMs}`);
    const [early] = await manifest.queue.takeAny(run, 10);
    assert.deepEqual(
      [early?.work.key, early?.progress, early?.queue, early?.message],
      ["doi:10.1/a", "half", "x.example", "quota spent"],
    );
    await manifest.queue.putOff(a.id, later);
    const due = await manifest.queue.take(run, "x.example", nowMs + 2 * HOUR_MS, 10);
    assert.deepEqual(
      due.map(({ work }) => work.key),
      ["doi:10.1/a"],
    );
  });

  test("works that a killed run had taken are taken by the next run", async t => {
    const manifest = await open(t);
    const killed = await manifest.beginRun("run");
    await added(manifest, killed, works("a"));
    await taken(manifest, killed);
    await manifest.endRun(killed, "interrupted");
    const next = await manifest.beginRun("retry");
    assert.equal(await manifest.works.addUnfinished(next, [], true), 1);
    assert.deepEqual(keys(await taken(manifest, next)), ["doi:10.1/a"]);
  });

  test("what resolvers add is merged into the work, and the other fields stay", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await manifest.works.add(
      run,
      [{ key: "doi:10.1/a", ids: { doi: "10.1/a" }, metadata: { title: "A", year: 2020 } }],
      {
        isPresent: () => true,
      },
    );
    const { id, key } = await takenOne(manifest, run);
    const metadata = { title: "A b", venue: "V" };
    const sources = { title: "crossref", venue: "crossref" };
    const url = "https://x.example/a?token=s3cret";
    assert.equal(await manifest.works.update({ id, key, ids: { pmid: "9", url }, metadata, sources }), undefined);
    const record = await manifest.reports.workRecord(id);
    assert.deepEqual(record.metadata, { title: "A b", year: 2020, venue: "V" });
    assert.deepEqual(record.sources, { title: "crossref", year: "list", venue: "crossref" });
    assert.deepEqual([record.ids.doi, record.ids.pmid], ["10.1/a", "9"]);
    assert.doesNotMatch(JSON.stringify(record), /s3cret/);
    assert.equal(await manifest.works.stateOf({ key: "pmid:9", ids: { pmid: "9" } }), "pending");
  });

  test("two works that turn out to be one are merged, and the identifiers of both name it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, [...works("a"), { key: "pmid:1", ids: { pmid: "1" } }]);
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    assert.equal(await manifest.works.update({ ...b, ids: { pmid: "1", doi: "10.1/a", pmcid: "PMC1" } }), a.id);
    await manifest.works.merge({ ...b, ids: { pmid: "1", doi: "10.1/a", pmcid: "PMC1" } }, a.id);
    await manifest.finish(run, a.id, "ok", DOWNLOADED);
    const { works: counts } = await manifest.reports.report();
    assert.deepEqual(counts, { total: 1, done: 1, failed: 0, pending: 0, merged: 1 });
    const records = await collected(manifest.reports.workRecords());
    assert.deepEqual(
      records.map(({ key, ids }) => [key, ids]),
      [["doi:10.1/a", { doi: "10.1/a", pmid: "1", pmcid: "PMC1" }]],
    );
    const again = await manifest.beginRun("run");
    assert.deepEqual(await added(manifest, again, [{ key: "pmid:1", ids: { pmid: "1" } }]), {
      ...{ pending: 0, present: 1, failed: 0 },
    });
  });

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
    assert.deepEqual(await manifest.files.part(part.urlHash, id), part);
    await manifest.files.savePart({ ...part, validator: undefined, totalBytes: undefined, destination: DOWNLOADED });
    assert.deepEqual((await manifest.files.partsOf(id))[0]?.destination, DOWNLOADED);
    await manifest.files.savePart({ ...part, urlHash: "other", file: "2.part" });
    assert.equal((await manifest.files.partsOf(id)).length, 2);
    await manifest.files.deletePart("other", id);
    assert.equal((await manifest.files.partsOf(id)).length, 1);
    await manifest.finish(run, id, "ok", { ...DOWNLOADED, licence: "cc-by", version: "published" });
    assert.deepEqual(await manifest.files.partsOf(id), []);
    const { sha256, path, bytes, mediaType } = DOWNLOADED;
    const stored = { sha256, path, bytes, mediaType };
    assert.deepEqual(await manifest.files.file(sha256), stored);
    assert.deepEqual(await manifest.files.ofWork(id), [stored]);
    assert.deepEqual(await manifest.files.source(DOWNLOADED.urlHash), {
      ...{ file: stored, etag: '"1"', lastModified: undefined, run },
    });
    assert.equal(await manifest.files.source("unknown"), undefined);
    const { licence, version, files, reason } = await manifest.reports.workRecord(id);
    assert.deepEqual([licence, version, reason, files.length], ["cc-by", "published", "ok", 1]);
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
    await manifest.finish(run, work.id, "ok", file("a.pdf", { ofSeveral: "main" }));
    assert.equal((await manifest.files.partsOf(work.id)).length, 1);
    const zip = { mediaType: "application/zip", role: "supplement", ofSeveral: "further" } as const;
    await manifest.finish(run, work.id, "ok", file("data.zip", zip));
    assert.equal((await manifest.files.partsOf(work.id)).length, 0);
    // The same bytes as the article stay the article; other bytes from the same URL replace the supplement.
    await manifest.finish(run, work.id, "duplicate", file("a.pdf", { ...zip, path: "a.pdf" }));
    await manifest.finish(
      run,
      work.id,
      "ok",
      file("data.zip", { ...zip, sha256: "cd".repeat(32), path: "data~2.zip" }),
    );
    await manifest.saveProgress(work.id, "so far");
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
    await manifest.queue.takeAny(2, 1);
    await manifest.finish(2, id, "ok", { ...DOWNLOADED, sha256: "cd".repeat(32), flag: "no-eof", displaced });
    assert.deepEqual(
      (await manifest.files.ofWork(id)).map(({ path, flag }) => [path, flag]),
      [[DOWNLOADED.path, "no-eof"]],
    );
    assert.equal((await manifest.files.file(DOWNLOADED.sha256))?.path, displaced.path);
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
    assert.equal(await manifest.files.source(DOWNLOADED.urlHash), undefined);
    assert.deepEqual(await manifest.reports.storedFiles(), []);
    assert.equal((await taken(manifest, run)).length, 2);
  });

  test("the history of a work has its attempts in their order, with the host of each URL and no secret", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    const { id } = await takenOne(manifest, run);
    const url = "https://x.example/a.pdf?token=s3cret";
    await manifest.recordAttempt(run, id, attempt({ url, status: 503, reason: "http-status" }));
    await manifest.recordAttempt(run, id, attempt({ reason: "no-copy" }));
    await manifest.fail(id, "no-copy", "nothing found");
    const history = await manifest.reports.workHistory("doi:10.1/a");
    assert.deepEqual(
      [history?.key, history?.state, history?.reason, history?.message],
      ["doi:10.1/a", "failed", "no-copy", "nothing found"],
    );
    assert.deepEqual(
      history?.attempts.map(({ host, status, reason }) => [host, status, reason]),
      [
        ["x.example", 503, "http-status"],
        ["x.example", undefined, "no-copy"],
      ],
    );
    assert.doesNotMatch(JSON.stringify(history), /s3cret/);
    assert.deepEqual((await manifest.reports.workHistory("doi:10.1/b"))?.attempts, []);
    assert.equal(await manifest.reports.workHistory("doi:10.1/none"), undefined);
  });

  test("the export has every work with its attempts, and no secrets of URLs", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    const { id } = await takenOne(manifest, run);
    const url = "https://x.example/a.pdf?token=s3cret";
    await manifest.recordAttempt(run, id, attempt({ url, status: 503, reason: "http-status" }));
    await manifest.recordAttempt(run, id, attempt({ url, status: 200, bytes: 10, elapsedMs: 4.4 }));
    await manifest.finish(run, id, "ok", DOWNLOADED);
    const lines = await collected(manifest.reports.attemptLines());
    assert.doesNotMatch(lines.join(""), /s3cret/);
    const [a, b] = lines.map(line => JSON.parse(line));
    assert.deepEqual(
      [a.key, a.state, a.reason, a.ids, a.file],
      [
        ...["doi:10.1/a", "done", "ok", { doi: "10.1/a" }],
        { path: DOWNLOADED.path, sha256: DOWNLOADED.sha256, bytes: 10, media_type: "application/pdf", flag: null },
      ],
    );
    assert.deepEqual(
      a.attempts.map((each: { status: number; reason: string; elapsed_ms: number }) => [
        ...[each.status, each.reason, each.elapsed_ms],
      ]),
      [
        [503, "http-status", 3],
        [200, "ok", 4],
      ],
    );
    assert.deepEqual(Object.keys(a).sort(), [
      ...[
        "added",
        "attempts",
        "ended",
        "file",
        "ids",
        "key",
        "licence",
        "merged_into",
        "message",
        "metadata",
        "reason",
      ],
      ...["resolver", "run", "state", "title", "url", "version", "year"],
    ]);
    assert.deepEqual([b.state, b.file, b.attempts], ["pending", null, []]);
  });

  test("a report counts works, reasons, resolvers, files and runs", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run --out x");
    await added(manifest, run, works("a", "b", "c"));
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    for (const { id } of [a, b]) await manifest.recordAttempt(run, id, attempt({ step: "ask", reason: "found" }));
    await manifest.finish(run, a.id, "ok", DOWNLOADED);
    await manifest.fail(b.id, "no-copy", "no resolver knows a copy");
    const { works: counts, reasons, files, resolvers, runs } = await manifest.reports.report();
    assert.deepEqual(counts, { total: 3, done: 1, failed: 1, pending: 1, merged: 0 });
    assert.deepEqual(reasons, [
      { state: "done", reason: "ok", works: 1 },
      { state: "failed", reason: "no-copy", works: 1 },
    ]);
    assert.deepEqual(files, { count: 1, bytes: 10 });
    assert.deepEqual(resolvers, [{ resolver: "openalex", works: 1 }]);
    assert.deepEqual([runs[0]?.command, runs[0]?.state, runs[0]?.endedMs], ["run --out x", "running", undefined]);
    const message = "no resolver knows a copy";
    assert.deepEqual(await manifest.reports.failedWorks(5), [{ key: "doi:10.1/b", reason: "no-copy", message }]);
    assert.deepEqual(await manifest.reports.resolverCounts(), [{ resolver: "openalex", asked: 2, stored: 1 }]);
  });

  test("the workload of a resolver has its queries and downloads apart", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const { id } = await takenOne(manifest, run);
    await manifest.recordAttempt(run, id, attempt({ step: "ask", bytes: 5, elapsedMs: 20 }));
    await manifest.recordAttempt(run, id, attempt({ step: "robots", elapsedMs: 4 }));
    await manifest.recordAttempt(run, id, attempt({ bytes: 100, elapsedMs: 300 }));
    assert.deepEqual(await manifest.reports.workloads(), [
      { resolver: "openalex", queries: 2, queryMs: 24, downloads: 1, downloadMs: 300, bytes: 105 },
    ]);
  });

  test("a failed work keeps the progress of the manifest, the given one, or none", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const { id } = await takenOne(manifest, run);
    const putOff = { queue: "", notBeforeMs: 0, progress: "stored", message: "quota spent" };
    await manifest.queue.putOff(id, putOff);
    await manifest.queue.takeAny(run, 1);
    await manifest.fail(id, "rate-limited", undefined, undefined, true);
    assert.equal((await manifest.reports.failedWorks(1))[0]?.message, "quota spent");
    const retried = await manifest.beginRun("retry");
    await manifest.works.addUnfinished(retried, ["rate-limited"], true);
    const [again] = await manifest.queue.take(retried, "", systemTime.wallMs(), 1);
    assert.equal(again?.progress, "stored");
    await manifest.fail(id, "no-copy", undefined);
    const last = await manifest.beginRun("retry");
    await manifest.works.addUnfinished(last, "all", true);
    assert.equal((await manifest.queue.take(last, "", systemTime.wallMs(), 1))[0]?.progress, undefined);
  });

  test("text of any kind is stored as it is", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run 'x' \"y\" \\ $1 ?");
    const title = "'; DROP TABLE works; -- \u{1F4C4} \u202e {1,2} $1 ?1 \\n \n";
    await manifest.works.add(run, [{ key: "doi:10.1/a'b", ids: { doi: "10.1/a'b" }, metadata: { title } }], {
      isPresent: () => true,
    });
    const [record] = await collected(manifest.reports.workRecords());
    assert.deepEqual([record?.key, record?.metadata.title], ["doi:10.1/a'b", title]);
    assert.equal((await manifest.reports.report()).runs[0]?.command, "run 'x' \"y\" \\ $1 ?");
  });
}
