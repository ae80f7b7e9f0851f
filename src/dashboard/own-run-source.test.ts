import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { scriptedHub } from "../../test/dashboard/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { openManifest } from "../harvest/manifest/manifest.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { HubSource } from "./hub-source.ts";
import { OwnRunSource } from "./own-run-source.ts";

async function ownRun(t: TestContext) {
  const time = new FakeTime();
  const manifest = await openManifest(join(temporaryFolder("dashboard"), "manifest.sqlite"), systemTime);
  t.after(() => manifest.close());
  const run = await manifest.beginRun("run list.csv");
  await manifest.works.add(run, [{ key: "doi:10.1/a", ids: { doi: "10.1/a" } }], { isPresent: () => false });
  const { hub, set } = scriptedHub();
  let resolvers = 0;
  const actions = {
    names: ["pause"] as const,
    run: async () => ({ isApplied: true, text: "applied" }),
  };
  /** Called before each read of the manifest. */
  const server: { beforeRead: () => Promise<void> } = { beforeRead: async () => undefined };
  const { reports } = manifest;
  const resolverCounts = reports.resolverCounts.bind(reports);
  reports.resolverCounts = async () => {
    resolvers += 1;
    await server.beforeRead();
    return resolverCounts();
  };
  const source = new OwnRunSource(new HubSource(hub, time, actions), {
    run: {
      manifest,
      timeLeftMs: 5000,
      pipeline: { isPaused: false },
    },
    folder: "papers",
    time,
  });
  return { source, manifest, time, set, server, reads: () => resolvers };
}

test("while the manifest does not answer, the hub is shown as it is, with the last works and a message", async t => {
  const { source, time, set, server, reads } = await ownRun(t);
  const first = await source.read();
  assert.deepEqual([first.run?.pending, first.run?.timeLeftMs, first.trouble], [1, 5000, null]);
  const back = Promise.withResolvers<void>();
  server.beforeRead = () => back.promise;
  set({ calls: 7 });
  const late = source.read();
  await time.advance(1000);
  const { run, totals, trouble } = await late;
  assert.deepEqual([run?.pending, totals.calls], [1, 7]);
  assert.match(
    trouble ?? "",
    /^The works of the run cannot be read now, and the page shows the last ones: no answer for 1 s$/,
  );
  await time.advance(60_000);
  assert.match((await source.read()).trouble ?? "", /no answer for 61 s$/);
  assert.equal(reads(), 2, "the read that waits is the only one");
  back.resolve();
  await new Promise(setImmediate);
  assert.equal((await source.read()).trouble, null);
});

test("after the end of a run the page shows its last state, says so, and refuses actions", async t => {
  const { source, manifest, set } = await ownRun(t);
  set({ calls: 7, inFlight: 2 });
  await source.runEnded("ended");
  await manifest.close();
  set({ calls: 0, inFlight: 0 });
  const { run, totals, trouble } = await source.read();
  assert.deepEqual([run?.state, run?.pending, run?.timeLeftMs, totals.calls], ["ended", 1, null, 7]);
  assert.ok(run?.endedMs);
  assert.equal(trouble, "The run has ended, and the page shows its last state.");
  const pause = { name: "pause", targetText: "the run", failure: "", reason: "maintenance" } as const;
  await assert.rejects(source.actions?.run(pause) ?? assert.fail(), /^RangeError: the run has ended$/);
  await assert.rejects(source.workHistory("doi:10.1/a"), /^RangeError: the run has ended, and its manifest is closed$/);
});
