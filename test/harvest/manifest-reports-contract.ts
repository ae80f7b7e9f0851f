/** What every backend reports about works, attempts and runs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { added, attempt, collected, DOWNLOADED, type OpenManifest, taken, takenOne, works } from "./manifest-kit.ts";

export function reportsContract(open: OpenManifest): void {
  test("the latest flags are those of the latest run that has recorded flags", async t => {
    const manifest = await open(t);
    assert.equal(await manifest.reports.latestFlags(), undefined);
    await manifest.endRun(await manifest.beginRun("harvest"), "ended");
    assert.equal(await manifest.reports.latestFlags(), undefined);
    for (const layout of ["flat", "by-doi"])
      await manifest.endRun(await manifest.beginRun("run", undefined, JSON.stringify({ layout })), "ended");
    await manifest.endRun(await manifest.beginRun("harvest"), "ended");
    assert.equal(await manifest.reports.latestFlags(), `{"layout":"by-doi"}`);
    const rejected = await manifest.beginRun("run", undefined, "{}");
    await manifest.beginList();
    await added(manifest, rejected, works("a"));
    await manifest.rollbackList();
    await manifest.endRun(rejected, "interrupted");
    assert.equal(await manifest.reports.latestFlags(), `{"layout":"by-doi"}`, "its list was rejected");
    const interrupted = await manifest.beginRun("run", undefined, "{}");
    await added(manifest, interrupted, works("a"));
    await manifest.endRun(interrupted, "interrupted");
    assert.equal(await manifest.reports.latestFlags(), "{}");
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
    await manifest.finish(run, id, "ok", DOWNLOADED, attempt({ url, status: 200, bytes: 10, elapsedMs: 4.4 }));
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
}
