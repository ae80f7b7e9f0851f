import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { SqliteManifest } from "./manifest/sqlite/sqlite-manifest.ts";
import { OpenWorks } from "./open-works.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { SecretUrls } from "./secret-urls.ts";

const HOUR_US = 3_600_000_000;

/** @param settled gets the works that are settled */
function openWorksOf(
  manifest: SqliteManifest,
  time: FakeTime,
  run: number,
  settled: string[],
  resolvers: readonly Resolver[] = [],
): OpenWorks {
  return new OpenWorks(
    {
      ...{ manifest, time, run, secretUrls: new SecretUrls(), filter: {}, maxOpen: 10, maxBreakerWaitMs: 1000 },
      onSettled: ({ key }, state) => settled.push(`${key} ${state}`),
    },
    {
      ...{ order: () => resolvers, resolvers, formats: ["pdf"], pageReader: undefined, archive: undefined },
      ...{ maxBreakerWaitMs: 1000, random: () => 0 },
    },
  );
}

test("works that another process has given back after the backlog was read do not fail with those that wait", async t => {
  const time = new FakeTime();
  const manifest = await SqliteManifest.open(join(temporaryFolder("open-works"), "manifest.sqlite"), time);
  t.after(() => manifest.close());
  const run = await manifest.beginRun("run");
  const listed = ["1", "2"].map(pmid => ({ key: `pmid:${pmid}`, ids: { pmid } }));
  await manifest.works.add(run, listed, { isPresent: () => true });
  const [waiting] = await manifest.queue.take(run, "", time.wallMs(), 1);
  const notBeforeMs = time.wallMs() + HOUR_US / 1000;
  await manifest.queue.putOff(waiting?.work.id ?? 0, { queue: "x.example", notBeforeMs, progress: undefined });
  const settled: string[] = [];
  const open = openWorksOf(manifest, time, run, settled);
  const waitsAlone = () => open.backlog.add("x.example", 1, time.monotonicUs() + HOUR_US);
  waitsAlone();
  assert.equal(await open.failQuotaWaits(), true);
  assert.deepEqual(settled, ["pmid:1 failed"]);
  // Another process has settled the work that waits: only the other one is left, and it is loaded after a pause.
  open.backlog.clear();
  waitsAlone();
  assert.equal(await open.failQuotaWaits(), false);
  assert.deepEqual(settled, ["pmid:1 failed"]);
  const pauseUs = open.nextUs(time.monotonicUs()) - time.monotonicUs();
  assert.ok(pauseUs > 0 && pauseUs < 1_000_000, `${pauseUs}`);
});

test("a wall clock that is set back makes no work wait longer, and one that is set forward ends its wait", async t => {
  const time = new FakeTime();
  const manifest = await SqliteManifest.open(join(temporaryFolder("open-works"), "manifest.sqlite"), time);
  t.after(() => manifest.close());
  const run = await manifest.beginRun("run");
  await manifest.works.add(run, [{ key: "pmid:1", ids: { pmid: "1" } }], { isPresent: () => true });
  const [waiting] = await manifest.queue.take(run, "", manifest.queue.nowMs(), 1);
  const notBeforeMs = manifest.queue.nowMs() + 60_000;
  await manifest.queue.putOff(waiting?.work.id ?? 0, { queue: "x.example", notBeforeMs, progress: undefined });
  const open = openWorksOf(manifest, time, run, []);
  time.stepWall(-3_600_000);
  await open.readBacklog();
  assert.equal(open.nextUs(time.monotonicUs()), 60_000_000);
  time.stepWall(2 * 3_600_000);
  assert.equal(manifest.queue.nowMs(), time.wallMs());
});

test("of the works beyond its share a process gives back downloads first and then queries, all at the same time", async t => {
  const time = new FakeTime();
  const manifest = await SqliteManifest.open(join(temporaryFolder("open-works"), "manifest.sqlite"), time);
  t.after(() => manifest.close());
  const run = await manifest.beginRun("run");
  const listed = ["1", "2", "3", "4", "5", "6"].map(pmid => ({ key: `pmid:${pmid}`, ids: { pmid } }));
  await manifest.works.add(run, listed, { isPresent: () => true });
  const resolver: Resolver = {
    ...{ name: "x", hosts: ["x.example"], needs: [] },
    requestFor: ({ ids }) => ({ url: `https://x.example/${ids.pmid}`, role: "metadata" }),
    parse: () => ({ kind: "none", reason: "no-copy" }),
    inferred: ({ ids: { pmid } }) =>
      Number(pmid) > 3
        ? { kind: "found", candidates: [{ url: `https://x.example/${pmid}.pdf`, kind: "pdf" }] }
        : undefined,
  };
  const open = openWorksOf(manifest, time, run, [], [resolver]);
  await open.readBacklog();
  await open.load();
  assert.equal(open.queues.size, 6);
  const written = Promise.withResolvers<void>();
  const putOff = manifest.queue.putOff.bind(manifest.queue);
  let putOffs = 0;
  manifest.queue.putOff = async (...work) => {
    putOffs += 1;
    if (putOffs === 5) written.resolve();
    await written.promise;
    return putOff(...work);
  };
  let announced = 0;
  manifest.queue.surplus = async () => ({ downloads: 4, queries: 5 });
  manifest.queue.announce = async () => {
    announced += 1;
  };
  manifest.queue.take = async () => [];
  open.changedElsewhere();
  await open.load();
  const counts = (await manifest.queue.waiting(run)).map(({ queue, works }) => `${works} in ${queue}`);
  assert.deepEqual(counts.toSorted(), ["2 in x.example metadata", "3 in x.example artifact"]);
  assert.equal(open.count, 1);
  assert.equal(announced, 1);
});
