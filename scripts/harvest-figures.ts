/**
 * Measures a run over the simulated internet on virtual time, with the shipped limits: how long it takes and how long it
 * was estimated to take, how many requests it sends, and how much memory it needs.
 *
 *   node scripts/harvest-figures.ts --works 10000 [--patience 86400]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { limitYoungHeap } from "../src/cli/young-heap.ts";
import { learnedYields } from "../src/harvest/estimate/learned-yields.ts";
import { ListEstimator } from "../src/harvest/estimate/list-estimator.ts";
import { workOf } from "../src/harvest/identifiers/identifiers.ts";
import { orderFor, RESOLVERS } from "../src/harvest/resolvers/order.ts";
import { openRun } from "../src/harvest/run.ts";
import type { Work } from "../src/harvest/work.ts";
import { loadPolicy } from "../src/policy/load.ts";
import { FakeTime } from "../src/testing/fake-time.ts";
import { systemTime } from "../src/time/system-time.ts";
import { databaseOf } from "../test/harvest/kit.ts";
import { runVirtually, virtualHub } from "../test/harvest/virtual-hub.ts";
import { scriptArguments, wholeNumber } from "./script-arguments.ts";
import { startServices } from "./simulated-services.ts";

const { values } = scriptArguments({
  options: { works: { type: "string", default: "1000" }, patience: { type: "string", default: "86400" } },
});
const maxBreakerWaitMs = wholeNumber("patience", values.patience) * 1000;
const resolvers = RESOLVERS.filter(({ needs }) => needs.every(name => name === "DOCSTOKG_MAILTO"));
const order = (work: Work) => orderFor(work, resolvers);
using services = await startServices(wholeNumber("works", values.works));
const works = services.works.map(ids => workOf(ids.doi === undefined ? ids : { doi: ids.doi }));
const { ratelimits } = await loadPolicy({ env: {} });
// As the program does before a run.
limitYoungHeap();

const time = new FakeTime();
const virtual = await virtualHub({ time, answer: request => services.answer(request) });
const folder = mkdtempSync(join(tmpdir(), "docstokg-figures-"));
const settled = new Map<string, number>();
const limits = ratelimits.resolved;
const estimator = new ListEstimator({ limits, order, yields: learnedYields([]), maxBreakerWaitMs });
let mostMemory = 0;
const memoryBefore = process.memoryUsage().rss;
let mostOpen = 0;
const run = await openRun({
  ...{ hub: virtual.hub, time, folder, manifest: join(folder, "manifest.sqlite"), command: "figures" },
  ...{ order, resolvers, limits, maxBreakerWaitMs },
  onSettled: (_, __, reason) => {
    settled.set(reason, (settled.get(reason) ?? 0) + 1);
    mostOpen = Math.max(mostOpen, run.pipeline.openWorks);
    mostMemory = Math.max(mostMemory, process.memoryUsage().rss);
  },
});
try {
  for (const work of works) estimator.add(work, run.pipeline.queueOf(work));
  const startedUs = systemTime.monotonicUs();
  await run.addWorks(works);
  const listedMs = (systemTime.monotonicUs() - startedUs) / 1000;
  run.pipeline.inputEnded();
  await runVirtually(time, run, virtual);
  const estimate = estimator.total;
  const byHost = new Map<string, number>();
  for (const { host, role } of virtual.sent) byHost.set(`${host} ${role}`, (byHost.get(`${host} ${role}`) ?? 0) + 1);
  const batched = ["api.openalex.org", "api.crossref.org", "www.ebi.ac.uk", "pmc.ncbi.nlm.nih.gov", "export.arxiv.org"];
  const batchCalls = Object.fromEntries(batched.map(host => [host, byHost.get(`${host} metadata`) ?? 0]));
  process.stdout.write(
    `${JSON.stringify(
      {
        works: works.length,
        settled: Object.fromEntries(settled),
        virtualSeconds: Math.round(time.monotonicUs() / 1e6),
        estimatedSeconds: Math.round(estimate.ms / 1000),
        decides: estimate.services.slice(0, 6),
        requests: virtual.sent.length,
        batchCallsPerWork: Object.values(batchCalls).reduce((sum, calls) => sum + calls, 0) / works.length,
        batchCalls,
        rejected: virtual.rejected.length,
        failures: databaseOf(run.manifest)
          .prepare(
            "SELECT resolver, reason, message, count(*) AS attempts FROM attempts WHERE reason IN ('unreadable', 'network') GROUP BY 1, 2, 3",
          )
          .all(),
        rejectedAt: virtual.rejected.slice(0, 5),
        listedMs: Math.round(listedMs),
        realSeconds: Math.round((systemTime.monotonicUs() - startedUs) / 1e6),
        mostOpen,
        mostMemoryMiB: Math.round(mostMemory / 2 ** 20),
        memoryBeforeMiB: Math.round(memoryBefore / 2 ** 20),
        byHost: Object.fromEntries([...byHost].sort((one, other) => other[1] - one[1]).slice(0, 25)),
      },
      undefined,
      2,
    )}\n`,
  );
} finally {
  await run.close("ended");
  rmSync(folder, { recursive: true, force: true });
}
