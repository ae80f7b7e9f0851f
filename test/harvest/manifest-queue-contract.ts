/** How every backend hands out works, and keeps their progress. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Work } from "../../src/harvest/work.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { added, HOUR_MS, keys, type OpenManifest, taken, takenOne, works } from "./manifest-kit.ts";

export function queueContract(open: OpenManifest): void {
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

  test("a work of a process that has ended continues where its progress was saved", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const { id } = await takenOne(manifest, run);
    await manifest.saveProgress(id, "x.example", "half");
    await manifest.endRun(run, "interrupted");
    const next = await manifest.beginRun("run");
    await manifest.works.addUnfinished(next, [], true);
    const [again] = await manifest.queue.take(next, "x.example", systemTime.wallMs(), 1);
    assert.deepEqual([again?.work.id, again?.progress], [id, "half"]);
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
    const [early] = await manifest.queue.takeLater(run, nowMs + HOUR_MS / 2, [], 10);
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

  test("works that may start only later are taken, and those of some queues, but no others", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [a, b, c, d] = await taken(manifest, run);
    assert.ok(a && b && c && d);
    const nowMs = systemTime.wallMs();
    const putOff = (id: number, queue: string, notBeforeMs: number) =>
      manifest.queue.putOff(id, { queue, notBeforeMs, progress: undefined });
    await putOff(a.id, "x.example", nowMs + 2 * HOUR_MS);
    await putOff(b.id, "x.example", nowMs + HOUR_MS / 2);
    await putOff(c.id, "x.example", 0);
    await putOff(d.id, "y.example", 0);
    const later = await manifest.queue.takeLater(run, nowMs + HOUR_MS, ["y.example"], 10);
    assert.deepEqual(keys(later.map(({ work }) => work)), ["doi:10.1/a", "doi:10.1/d"]);
    assert.deepEqual(await manifest.queue.takeLater(run, nowMs + HOUR_MS, [], 10), []);
  });

  test("works of a queue that wait for a limit may start at once when their waits end, and no others", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a", "b", "c", "d"));
    const [a, b, c, d] = await taken(manifest, run);
    assert.ok(a && b && c && d);
    const notBeforeMs = systemTime.wallMs() + HOUR_MS;
    const putOff = (id: number, queue: string, message: string | undefined) =>
      manifest.queue.putOff(id, { queue, notBeforeMs, progress: undefined, message });
    await putOff(a.id, "x.example artifact", "quota spent");
    await putOff(b.id, "x.example artifact", undefined);
    await putOff(c.id, "y.example artifact", "quota spent");
    await putOff(d.id, "z.example artifact", "quota spent");
    await manifest.queue.endWaits(run, ["x.example artifact", "y.example artifact"]);
    assert.deepEqual(keys(await taken(manifest, run, 10, "x.example artifact")), ["doi:10.1/a"]);
    assert.deepEqual(keys(await taken(manifest, run, 10, "y.example artifact")), ["doi:10.1/c"]);
    assert.deepEqual(keys(await taken(manifest, run, 10, "z.example artifact")), []);
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

  test("a failed work keeps the given progress, or none", async t => {
    const manifest = await open(t);
    const run = await manifest.beginRun("run");
    await added(manifest, run, works("a"));
    const { id } = await takenOne(manifest, run);
    await manifest.fail(id, "rate-limited", "quota spent", "stored");
    assert.equal((await manifest.reports.failedWorks(1))[0]?.message, "quota spent");
    const retried = await manifest.beginRun("retry");
    await manifest.works.addUnfinished(retried, ["rate-limited"], true);
    const [again] = await manifest.queue.take(retried, "", systemTime.wallMs(), 1);
    assert.equal(again?.progress, "stored");
    await manifest.fail(id, "no-copy", undefined);
    // The message explained the wait for the quota, not this failure.
    assert.equal((await manifest.reports.failedWorks(1))[0]?.message, undefined);
    const last = await manifest.beginRun("retry");
    await manifest.works.addUnfinished(last, "all", true);
    assert.equal((await manifest.queue.take(last, "", systemTime.wallMs(), 1))[0]?.progress, undefined);
  });
}
