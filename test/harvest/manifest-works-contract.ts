/** How every backend lists works and merges what is known about them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { identify } from "../../src/harvest/identifiers/identifiers.ts";
import type { StoredFile } from "../../src/harvest/manifest/manifest-files.ts";
import type { TablePage } from "../../src/harvest/manifest/manifest-tables.ts";
import type { Work } from "../../src/harvest/work.ts";
import { systemTime } from "../../src/time/system-time.ts";
import {
  added,
  collected,
  DOWNLOADED,
  IS_PRESENT,
  keys,
  type OpenManifest,
  taken,
  takenOne,
  works,
} from "./manifest-kit.ts";

export function worksContract(open: OpenManifest): void {
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

  for (const isOneBatch of [true, false])
    test(`a work gets what later entries of ${isOneBatch ? "its batch" : "other lists"} add to it`, async t => {
      const manifest = await open(t);
      const run = await manifest.beginRun("run");
      const entries: readonly Work[] = [
        { key: "doi:10.1/a", ids: { doi: "10.1/a" }, metadata: { year: 2020 } },
        { key: "doi:10.1/a", ids: { doi: "10.1/a", pmid: "1" }, metadata: { title: "A", year: 2021 } },
        { key: "pmid:1", ids: { pmid: "1", arxiv: "2401.00001", pmcid: undefined } },
      ];
      for (const list of isOneBatch ? [entries] : entries.map(entry => [entry])) await added(manifest, run, list);
      const work = await takenOne(manifest, run);
      const ids = { doi: "10.1/a", pmid: "1", arxiv: "2401.00001" };
      assert.deepEqual([work.ids, work.metadata], [ids, { year: 2020, title: "A" }]);
      assert.deepEqual(work.sources, { year: "list", title: "list" });
      const [record] = await collected(manifest.reports.workRecords());
      assert.deepEqual([record?.ids, record?.metadata.title], [ids, "A"]);
      // The search for the work does not know what a list has added since the work was taken.
      await added(manifest, run, [{ key: "pmid:1", ids: { pmid: "1", pmcid: "PMC1" } }]);
      const refused = await manifest.fail(work.id, "no-copy", undefined, undefined, 0);
      assert.ok(typeof refused === "object");
      assert.deepEqual(refused.work.ids, { ...ids, pmcid: "PMC1" });
      await added(manifest, run, entries);
      assert.equal(await manifest.fail(work.id, "no-copy", undefined, undefined, 1), "failed");
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

  test("a work that is refreshed and fails stays done with its file, unless the file is missing or damaged", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, works("a"));
    const { id } = await takenOne(manifest, first);
    await manifest.finish(first, id, "ok", DOWNLOADED);
    const refresh = async (isPresent: boolean) => {
      const run = await manifest.beginRun("run");
      await manifest.works.add(run, works("a"), { isPresent: () => isPresent, isRefresh: true });
      await takenOne(manifest, run);
      const state = await manifest.fail(id, "http-status", "404", "progress");
      const [record] = await collected(manifest.reports.workRecords());
      const files = (await manifest.reports.storedFiles()).length;
      return [state, record?.state, record?.reason, record?.url, files];
    };
    const kept = ["done", "done", "http-status", DOWNLOADED.url, 1];
    assert.deepEqual(await refresh(true), kept);
    assert.deepEqual(await refresh(true), kept);
    const again = await manifest.beginRun("run");
    assert.deepEqual(await added(manifest, again, works("a")), { pending: 0, present: 1, failed: 0 });
    assert.equal(await manifest.works.addUnfinished(again, "all", true), 0);
    assert.deepEqual((await refresh(false)).slice(0, 2), ["failed", "failed"]);

    const last = await manifest.beginRun("run");
    await manifest.works.addUnfinished(last, "all", false);
    await takenOne(manifest, last);
    await manifest.finish(last, id, "ok", DOWNLOADED);
    assert.equal(await manifest.works.reopen([DOWNLOADED.sha256]), 1);
    await manifest.works.addUnfinished(last, [], false);
    await takenOne(manifest, last);
    assert.equal(await manifest.fail(id, "http-status", "404"), "failed");
  });

  test("failed works of a list are named, and are pending again if the list retries them", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, works("a", "b"));
    const [a, b] = await taken(manifest, first);
    assert.ok(a && b);
    await manifest.fail(a.id, "no-copy", undefined);
    await manifest.fail(b.id, "rate-limited", undefined, "half");
    const isPresent = () => true;
    const second = await manifest.beginRun("run");
    const kept = await manifest.works.add(second, works("b", "a", "c", "a"), { isPresent });
    assert.deepEqual([kept.pending, kept.failed, kept.failedIds.toSorted()], [1, 2, [a.id, b.id]]);
    const third = await manifest.beginRun("run");
    const retried = await manifest.works.add(third, works("a", "b"), { isPresent, isRetry: true });
    assert.deepEqual([retried.pending, retried.failed, retried.failedIds], [2, 0, []]);
    const progress = (await manifest.queue.take(third, "", systemTime.wallMs(), 9)).map(each => each.progress);
    assert.deepEqual(progress, [undefined, "half"]);
  });

  test("failed works of a reason are added to a run in progress, and works that it has taken stay taken", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [first, second, third] = await manifest.queue.take(run, "", 0, 3);
    await manifest.fail(first?.work.id ?? 0, "network", "reset");
    await manifest.fail(second?.work.id ?? 0, "no-copy", "nothing found");
    assert.equal(await manifest.works.addFailed(run, "network"), 1);
    assert.equal(await manifest.works.addFailed(run, "network"), 0);
    const again = await manifest.queue.take(run, "", 0, 10);
    assert.deepEqual(
      again.map(({ work }) => work.key),
      ["doi:10.1/a", "doi:10.1/d"],
    );
    assert.equal(third?.work.key, "doi:10.1/c");
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

  test("the request that has given metadata is recorded with it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const work = await takenOne(manifest, run);
    const attempt = { step: "ask", resolver: "crossref", url: "https://x.example/?key=s3cret", status: 200 } as const;
    await manifest.works.update(
      { ...work, metadata: { title: "A" }, sources: { title: "crossref" } },
      { run, attempt: { ...attempt, reason: "found", bytes: 7, elapsedMs: 12.4 } },
    );
    await manifest.works.update(work);
    const [line = "{}"] = await collected(manifest.reports.attemptLines());
    const { attempts } = JSON.parse(line);
    assert.equal(attempts.length, 1);
    const { step, resolver, status, reason, bytes } = attempts[0];
    assert.deepEqual([step, resolver, status, reason, bytes], ["ask", "crossref", 200, "found", 7]);
    assert.doesNotMatch(line, /s3cret/);
  });

  test("two works that turn out to be one are merged, and the identifiers of both name it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, [...works("a"), { key: "pmid:1", ids: { pmid: "1" } }]);
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    assert.equal(await manifest.works.update({ ...b, ids: { pmid: "1", doi: "10.1/a", pmcid: "PMC1" } }), a.id);
    await manifest.works.merge({ ...b, ids: { pmid: "1", doi: "10.1/a", pmcid: "PMC1" } }, a.id, IS_PRESENT);
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

  test("the work that stays after a merge keeps its own identifiers", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    const url = (name: string) => `https://x.example/${name}`;
    await added(manifest, run, [
      { key: "doi:10.1/a", ids: { doi: "10.1/a", url: url("a") } },
      { key: "doi:10.1/b", ids: { doi: "10.1/b", url: url("b") } },
    ]);
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    const known = { ...a, ids: { ...a.ids, pmid: "1" } };
    assert.equal(await manifest.works.update(known), undefined);
    await manifest.works.merge({ ...b, ids: { ...b.ids, pmid: "1", pmcid: "PMC1" } }, a.id, IS_PRESENT);
    const ids = { doi: "10.1/a", url: url("a"), pmid: "1", pmcid: "PMC1" };
    assert.deepEqual((await manifest.reports.workRecord(a.id)).ids, ids);
    // What a resolver says later does not replace them either.
    await manifest.works.update({ ...known, ids: { ...known.ids, pmcid: "PMC2" } });
    assert.deepEqual((await manifest.reports.workRecord(a.id)).ids, ids);
    assert.equal(await manifest.works.stateOf({ key: "doi:10.1/b", ids: { doi: "10.1/b" } }), "pending");
  });

  test("a work gets the metadata and the files of a work that is merged into it", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await manifest.works.add(first, [{ ...works("a")[0], metadata: { title: "A", year: 2020 } } as Work], IS_PRESENT);
    await manifest.finish(first, (await takenOne(manifest, first)).id, "ok", DOWNLOADED);
    const run = await manifest.beginRun("run");
    const listed: readonly Work[] = [...works("a"), { key: "pmid:1", ids: { pmid: "1" }, metadata: { title: "B" } }];
    await manifest.works.add(run, listed, { ...IS_PRESENT, isRefresh: true });
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    assert.equal(await manifest.works.merge({ ...a, ids: { ...a.ids, pmid: "1" } }, b.id, IS_PRESENT), "merged");
    assert.notEqual(await manifest.fail(b.id, "no-copy", undefined, undefined, 0), "failed");
    assert.equal(await manifest.fail(b.id, "no-copy", undefined, undefined, 1), "done");
    const [record, ...others] = await collected(manifest.reports.workRecords());
    assert.deepEqual(others, []);
    assert.deepEqual([record?.key, record?.metadata], ["pmid:1", { title: "B", year: 2020 }]);
    assert.deepEqual(record?.sources, { title: "list", year: "list" });
    assert.deepEqual([record?.url, record?.files.map(({ path }) => path)], [DOWNLOADED.url, [DOWNLOADED.path]]);
    assert.equal(await manifest.works.reopen([DOWNLOADED.sha256]), 1);
    assert.deepEqual((await manifest.reports.report()).works, { total: 1, done: 0, failed: 0, pending: 1, merged: 1 });
  });

  test("a work neither fails nor is put off before it knows the progress of every work that was merged into it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [a, b, c, d] = await taken(manifest, run);
    assert.ok(a && b && c && d);
    assert.equal(await manifest.works.merge(a, b.id, { ...IS_PRESENT, progress: "of a" }), "merged");
    assert.equal(await manifest.works.merge(b, c.id, { ...IS_PRESENT, progress: "of b" }), "merged");
    const refused = await manifest.fail(c.id, "no-copy", undefined, undefined, 0);
    assert.ok(typeof refused === "object");
    assert.deepEqual([refused.work.key, refused.inherited], ["doi:10.1/c", ["of b", "of a"]]);
    assert.equal(await manifest.fail(c.id, "rate-limited", undefined, undefined, refused.inherited.length), "failed");
    // The work that is in memory absorbs the failed one, and what it has inherited.
    assert.equal(await manifest.works.merge(d, c.id, { ...IS_PRESENT, progress: "of d" }), "absorbed");
    const absorbed = await manifest.fail(d.id, "no-copy", undefined, undefined, 0);
    assert.ok(typeof absorbed === "object");
    assert.deepEqual(absorbed.inherited, ["", "of b", "of a"]);
    const putOff = { queue: "x", notBeforeMs: systemTime.wallMs() + 1e9, progress: "of d" };
    assert.deepEqual((await manifest.queue.putOff(d.id, { ...putOff, inherited: 2 }))?.inherited, absorbed.inherited);
    assert.equal(await manifest.queue.putOff(d.id, { ...putOff, inherited: 3 }), undefined);
    const again = await manifest.queue.takeLater(run, systemTime.wallMs(), [], 9);
    assert.deepEqual(
      again.map(({ progress, inherited }) => [progress, inherited.length]),
      [["of d", 3]],
    );
  });

  for (const [reason, kept] of [
    ["http-status", []],
    ["rate-limited", ["of a"]],
    ["breaker-open", ["of a"]],
  ] as const)
    test(`a work that failed with ${reason} ${kept.length > 0 ? "keeps" : "forgets"} the progress of a merged work`, async t => {
      const manifest = await open(t);
      const first = await manifest.beginRun("run");
      await added(manifest, first, works("a", "b"));
      const [a, b] = await taken(manifest, first);
      assert.ok(a && b);
      assert.equal(await manifest.works.merge(a, b.id, { ...IS_PRESENT, progress: "of a" }), "merged");
      const inheritedIn = async (run: number) =>
        (await manifest.queue.take(run, "", systemTime.wallMs(), 9))[0]?.inherited;
      await manifest.fail(b.id, reason, undefined);
      const listed = await manifest.beginRun("run");
      await manifest.works.add(listed, works("b"), { ...IS_PRESENT, isRetry: true });
      assert.deepEqual(await inheritedIn(listed), kept);
      await manifest.fail(b.id, reason, undefined);
      const continued = await manifest.beginRun("retry");
      await manifest.works.addUnfinished(continued, "all", true);
      assert.deepEqual(await inheritedIn(continued), kept);
      await manifest.fail(b.id, reason, undefined);
      const restarted = await manifest.beginRun("retry");
      await manifest.works.addUnfinished(restarted, "all", false);
      assert.deepEqual(await inheritedIn(restarted), []);
    });

  test("a work of an earlier version keeps its title and year when it is listed again or absorbs another one", async t => {
    const manifest = await open(t);
    await manifest.tables.write(withoutMetadata());
    const columns = async () => {
      const [line = "{}"] = await collected(manifest.reports.attemptLines());
      const { ids, title, year } = JSON.parse(line);
      return [ids, title, year];
    };
    const run = await manifest.beginRun("run");
    const listed: readonly Work[] = [{ key: "doi:10.1/a", ids: { doi: "10.1/a", pmid: "1" } }, ...works("b")];
    await manifest.works.add(run, listed, { ...IS_PRESENT, isRetry: true });
    assert.deepEqual(await columns(), [{ doi: "10.1/a", pmid: "1" }, "A", 1999]);
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    const merged = { ...b, ids: { ...b.ids, pmcid: "PMC1" } };
    assert.equal(await manifest.works.merge(merged, a.id, IS_PRESENT), "merged");
    assert.deepEqual(await columns(), [{ doi: "10.1/a", pmid: "1", pmcid: "PMC1" }, "A", 1999]);
  });

  test("a merged work hands on what it has inherited once, also if its progress contains a part of it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [a, b, c, d] = await taken(manifest, run);
    assert.ok(a && b && c && d);
    await manifest.works.merge(a, c.id, { ...IS_PRESENT, progress: "of a" });
    await manifest.works.merge(b, c.id, { ...IS_PRESENT, progress: "of b" });
    const progress = JSON.stringify({ steps: [], queried: [], inherited: 1 });
    await manifest.works.merge(c, d.id, { ...IS_PRESENT, progress });
    const refused = await manifest.fail(d.id, "no-copy", undefined, undefined, 0);
    assert.deepEqual(typeof refused === "object" && refused.inherited, [progress, "of b"]);
  });

  test("a work with several files is not done before it knows the progress of a work that was merged into it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    await manifest.finish(run, b.id, "ok", { ...DOWNLOADED, ofSeveral: "main" });
    assert.equal(await manifest.works.merge(a, b.id, { ...IS_PRESENT, progress: "of a" }), "merged");
    assert.deepEqual((await manifest.complete(b.id, "ok", undefined, 0))?.inherited, ["of a"]);
    assert.equal(await manifest.works.stateOf(b), "pending");
    assert.equal(await manifest.complete(b.id, "ok", undefined, 1), undefined);
    assert.equal(await manifest.works.stateOf(b), "done");
  });

  test("a work that waits is taken at once if another one is merged into it", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b"));
    const [a, b] = await taken(manifest, run);
    assert.ok(a && b);
    await manifest.queue.putOff(b.id, { queue: "x", notBeforeMs: systemTime.wallMs() + 1e9, progress: "of b" });
    await manifest.saveProgress(a.id, "x", "of a");
    assert.equal(await manifest.works.merge(a, b.id, IS_PRESENT), "merged");
    const [again] = await manifest.queue.take(run, "", systemTime.wallMs(), 9);
    assert.deepEqual([again?.work.key, again?.progress, again?.inherited], ["doi:10.1/b", "of b", ["of a"]]);
    await manifest.finish(run, b.id, "ok", DOWNLOADED);
    const refreshed = await manifest.beginRun("run");
    await manifest.works.add(refreshed, works("b"), { ...IS_PRESENT, isRefresh: true });
    const [last] = await manifest.queue.take(refreshed, "", systemTime.wallMs(), 9);
    assert.deepEqual([last?.work.key, last?.inherited], ["doi:10.1/b", []]);
  });

  test("a work absorbs a done one whose file is missing, and does not get that file", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, [{ key: "pmid:1", ids: { pmid: "1" } }]);
    const other = await takenOne(manifest, first);
    await manifest.finish(first, other.id, "ok", DOWNLOADED);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const work = { ...(await takenOne(manifest, run)), ids: { doi: "10.1/a", pmid: "1" } };
    assert.equal(await manifest.works.merge(work, other.id, { isPresent: () => false }), "absorbed");
    assert.equal(await manifest.fail(work.id, "no-copy", undefined), "failed");
    assert.deepEqual(await manifest.reports.storedFiles(), []);
  });

  test("two works that name each other are merged once", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, [...works("a"), { key: "pmid:1", ids: { pmid: "1" } }]);
    const ids = { doi: "10.1/a", pmid: "1" };
    const [a, b] = (await taken(manifest, run)).map(work => ({ ...work, ids }));
    assert.ok(a && b);
    assert.equal(await manifest.works.update(a), b.id);
    assert.equal(await manifest.works.update(b), a.id);
    assert.equal(await manifest.works.merge(a, b.id, IS_PRESENT), "merged");
    assert.equal(await manifest.works.merge(b, a.id, IS_PRESENT), "outdated");
    assert.equal(await manifest.works.update(b), undefined);
    const { works: counts } = await manifest.reports.report();
    assert.deepEqual(counts, { total: 1, done: 0, failed: 0, pending: 1, merged: 1 });
  });

  test("a work is not merged into one that was merged meanwhile, but into the one that has its identifiers", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, [...works("a"), { key: "pmid:1", ids: { pmid: "1" } }, ...works("c")]);
    const [a, b, c] = await taken(manifest, run);
    assert.ok(a && b && c);
    const named = { ...a, ids: { doi: "10.1/a", pmid: "1" } };
    assert.equal(await manifest.works.update(named), b.id);
    assert.equal(await manifest.works.merge(b, c.id, IS_PRESENT), "merged");
    assert.equal(await manifest.works.merge(named, b.id, IS_PRESENT), "outdated");
    assert.equal(await manifest.works.update(named), c.id);
    assert.equal(await manifest.works.merge(named, c.id, IS_PRESENT), "merged");
    assert.deepEqual((await manifest.reports.workRecord(c.id)).ids, { doi: "10.1/c", pmid: "1" });
  });

  test("a work is found by the key of a work that was merged into it through others", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [a, b, c, d] = await taken(manifest, run);
    assert.ok(a && b && c && d);
    await manifest.works.merge(a, b.id, IS_PRESENT);
    await manifest.works.merge(b, c.id, IS_PRESENT);
    await manifest.works.merge(c, d.id, IS_PRESENT);
    await manifest.finish(run, d.id, "ok", DOWNLOADED);
    for (const work of works("a", "b", "c", "d")) {
      assert.equal(await manifest.works.stateOf(work), "done");
      const again = await manifest.beginRun("run");
      assert.deepEqual(await added(manifest, again, [work]), { pending: 0, present: 1, failed: 0 }, work.key);
    }
    const refreshed = await manifest.beginRun("run");
    await manifest.works.add(refreshed, works("a"), { isPresent: () => true, isRefresh: true });
    assert.deepEqual(keys(await taken(manifest, refreshed)), ["doi:10.1/d"]);
    assert.equal(await manifest.works.stateOf({ key: "doi:10.1/a", ids: { doi: "10.1/a" } }), "pending");
  });

  for (const [listed, other] of [
    ["a", "b"],
    ["b", "a"],
  ] as const)
    test(`of two works that an earlier version has merged into each other, ${listed} is resolved again`, async t => {
      const manifest = await open(t);
      await manifest.tables.write(mergedInCircle());
      const run = await manifest.beginRun("run");
      assert.deepEqual(await added(manifest, run, works(listed)), { pending: 1, present: 0, failed: 0 });
      const work = await takenOne(manifest, run);
      const ids = { doi: `10.1/${listed}`, pmid: other === "a" ? "1" : "2" };
      assert.equal(await manifest.works.update({ ...work, ids }), undefined, "the other is merged into this one");
      await manifest.finish(run, work.id, "ok", DOWNLOADED);
      const records = await collected(manifest.reports.workRecords());
      assert.deepEqual(keys(records), [`doi:10.1/${listed}`]);
      assert.equal(await manifest.works.stateOf({ key: `doi:10.1/${other}`, ids: {} }), "done");
    });

  test("a work absorbs one of two works that an earlier version has merged into each other", async t => {
    const manifest = await open(t);
    await manifest.tables.write(mergedInCircle());
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("c"));
    const work = { ...(await takenOne(manifest, run)), ids: { doi: "10.1/c", pmid: "1" } };
    const into = await manifest.works.update(work);
    assert.equal(into, 1);
    assert.equal(await manifest.works.merge(work, into, IS_PRESENT), "absorbed");
    assert.deepEqual((await manifest.reports.report()).works, { total: 1, done: 0, failed: 0, pending: 1, merged: 2 });
    for (const each of works("a", "b", "c")) assert.equal(await manifest.works.stateOf(each), "pending");
  });

  for (const state of ["failed in this run", "failed in an earlier run", "left by an earlier run"])
    test(`a work absorbs the same work that has ${state}, and continues`, async t => {
      const manifest = await open(t);
      const first = await manifest.beginRun("run");
      await added(manifest, first, [{ key: "pmid:1", ids: { pmid: "1", pmcid: "PMC1" } }]);
      const other = await takenOne(manifest, first);
      if (state.startsWith("failed")) await manifest.fail(other.id, "no-resolver", undefined);
      const isSameRun = state.endsWith("this run");
      if (!isSameRun) await manifest.endRun(first, "interrupted");
      const run = isSameRun ? first : await manifest.beginRun("run");
      await added(manifest, run, works("a"));
      const work = { ...(await takenOne(manifest, run)), ids: { doi: "10.1/a", pmid: "1" } };
      assert.equal(await manifest.works.update(work), other.id);
      assert.equal(await manifest.works.merge(work, other.id, IS_PRESENT), "absorbed");
      assert.equal(await manifest.works.update(work), undefined);
      await manifest.finish(run, work.id, "ok", DOWNLOADED);
      const [record, ...more] = await collected(manifest.reports.workRecords());
      assert.deepEqual([record?.key, record?.ids], ["doi:10.1/a", { doi: "10.1/a", pmid: "1", pmcid: "PMC1" }]);
      assert.deepEqual(more, []);
      const again = await manifest.beginRun("run");
      assert.equal((await added(manifest, again, [{ key: "pmid:1", ids: { pmid: "1" } }])).present, 1);
    });

  test("a work that absorbs an unfinished one gets the files that this one has", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, [{ key: "pmid:1", ids: { pmid: "1" } }]);
    const other = await takenOne(manifest, first);
    await manifest.finish(first, other.id, "ok", { ...DOWNLOADED, ofSeveral: "main" });
    await manifest.endRun(first, "interrupted");
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const work = { ...(await takenOne(manifest, run)), ids: { doi: "10.1/a", pmid: "1" } };
    assert.equal(await manifest.works.merge(work, other.id, IS_PRESENT), "absorbed");
    await manifest.complete(work.id, "ok");
    const [record] = await collected(manifest.reports.workRecords());
    assert.deepEqual([record?.url, record?.files.map(({ path }) => path)], [DOWNLOADED.url, [DOWNLOADED.path]]);
    assert.equal((await manifest.reports.storedFiles()).length, 1);
  });

  test("a work is merged into the same work of an earlier run that has a file", async t => {
    const manifest = await open(t);
    const first = await manifest.beginRun("run");
    await added(manifest, first, [{ key: "pmid:1", ids: { pmid: "1" } }]);
    const other = await takenOne(manifest, first);
    await manifest.finish(first, other.id, "ok", DOWNLOADED);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const work = { ...(await takenOne(manifest, run)), ids: { doi: "10.1/a", pmid: "1" } };
    assert.equal(await manifest.works.merge(work, other.id, IS_PRESENT), "merged");
  });

  test("works with the longest identifiers are added", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    // Random characters, because a database may compress others.
    const list = [
      `https://x.example/${randomBytes(2000).toString("hex")}`,
      `10.1234/${randomBytes(490).toString("hex")}`,
    ]
      .map(text => identify(text))
      .map(read => ("work" in read ? read.work : assert.fail(read.message)));
    assert.equal((await added(manifest, run, list)).pending, 2);
    assert.equal((await added(manifest, await manifest.beginRun("run"), list)).pending, 2);
    assert.equal((await manifest.reports.report()).works.total, 2);
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

/** The failed work a, as the first version has stored it. */
async function* withoutMetadata(): AsyncGenerator<TablePage> {
  yield { table: "runs", rows: [{ id: 1, command: "run", started_ms: 0, ended_ms: 1, state: "ended" }] };
  const failed = { run: 1, state: "failed", reason: "no-copy", queue: "", not_before_ms: 0, added_ms: 0, ended_ms: 1 };
  const facts = { ids: '{"doi":"10.1/a"}', title: "A", year: 1999, metadata: null };
  yield { table: "works", rows: [{ id: 1, key: "doi:10.1/a", ...facts, ...failed }] };
  yield { table: "work_ids", rows: [{ id: "doi:10.1/a", work: 1 }] };
}

/** The works a and b of an earlier run. Their identifiers are `pmid:1` and `pmid:2`, and both belong to a. */
async function* mergedInCircle(): AsyncGenerator<TablePage> {
  yield { table: "runs", rows: [{ id: 1, command: "run", started_ms: 0, ended_ms: 1, state: "ended" }] };
  const merged = { run: 1, state: "done", reason: "merged", queue: "", not_before_ms: 0, added_ms: 0, ended_ms: 1 };
  yield {
    table: "works",
    rows: [
      { id: 1, key: "doi:10.1/a", ids: '{"doi":"10.1/a","pmid":"1"}', merged_into: 2, ...merged },
      { id: 2, key: "doi:10.1/b", ids: '{"doi":"10.1/b","pmid":"2"}', merged_into: 1, ...merged },
    ],
  };
  const names = ["doi:10.1/a", "pmid:1", "doi:10.1/b", "pmid:2"];
  yield { table: "work_ids", rows: names.map(id => ({ id, work: 1 })) };
}
