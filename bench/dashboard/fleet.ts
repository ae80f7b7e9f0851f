/** The dashboard of a store that many processes share. */
import type { Browser } from "playwright-core";
import { systemTime } from "../../src/time/system-time.ts";
import { RedisServer } from "../../test/stores/redis-server.ts";
import type { PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { median, medianRange, percentile } from "../kit/statistics.ts";
import { DashboardProcess } from "./dashboard-process.ts";
import { type DashboardLoad, requestsPerSecond } from "./load.ts";
import { drawnAfterMs } from "./probes.ts";
import { WatchedPage } from "./watched-page.ts";
import { countsOf, Worker } from "./worker.ts";

/** Processes that use the same key. */
const SHARED_BY = 4;
const DELAY_MS_MAX = 1000;
const CPU_RATIO_MAX = 1.03;
const SETTLE_MS = 3000;

export async function measureFleet(browser: Browser, load: DashboardLoad): Promise<PartReport> {
  const { processes, hosts, seconds, rounds, probes } = load;
  const redis = await RedisServer.start();
  const each = Math.ceil((hosts.length * Math.min(SHARED_BY, processes)) / processes);
  const workers: Worker[] = [];
  // One after the other: all at once they would take the processor from the store for longer than it may be silent.
  for (let index = 0; index < processes; index += 1) {
    const start = Math.floor((index * hosts.length) / processes);
    const own = Array.from({ length: each }, (_, at) => hosts[(start + at) % hosts.length] as string);
    const worker = new Worker({ store: redis.url, hosts: own, requestsPerSecond: requestsPerSecond(load) / processes });
    workers.push(worker);
    await worker.counts();
  }
  const dashboard = await DashboardProcess.start(redis.url);
  try {
    const ratios: number[] = [];
    const workerShares: number[] = [];
    const serverShares: number[] = [];
    const pageShares: number[] = [];
    const eventRates: number[] = [];
    const cpuMsPerRequest = async () => {
      const [before, startUs] = [await countsOf(workers), systemTime.monotonicUs()];
      await systemTime.sleep(seconds * 1000);
      const [after, endUs] = [await countsOf(workers), systemTime.monotonicUs()];
      eventRates.push(((after.events - before.events) * 1e6) / (endUs - startUs));
      workerShares.push(((after.cpuMs - before.cpuMs) * 1000) / (endUs - startUs));
      return (after.cpuMs - before.cpuMs) / (after.requests - before.requests);
    };
    await systemTime.sleep(SETTLE_MS);
    for (let round = 0; round < rounds; round += 1) {
      const without = await cpuMsPerRequest();
      const page = await WatchedPage.open(browser, dashboard.url);
      await systemTime.sleep(SETTLE_MS);
      const [before, beforeMs, startUs] = [await page.figures(), dashboard.cpuMs(), systemTime.monotonicUs()];
      ratios.push((await cpuMsPerRequest()) / without);
      const [after, afterMs, endUs] = [await page.figures(), dashboard.cpuMs(), systemTime.monotonicUs()];
      const elapsedMs = (endUs - startUs) / 1000;
      serverShares.push((afterMs - beforeMs) / elapsedMs);
      pageShares.push((after.busyMs - before.busyMs) / elapsedMs);
      await page.close();
    }
    const page = await WatchedPage.open(browser, dashboard.url);
    const delays = await drawnAfterMs(page, redis.url, probes);
    const { heapMb, longTasksMs } = await page.figures();
    const [low, high] = medianRange(ratios);
    return {
      tables: [
        {
          title: `dashboard of a store: ${processes} processes, ${hosts.length} keys, each used by ${Math.min(SHARED_BY, processes)} processes`,
          columns: ["what", "value"],
          rows: [
            ["events per second that the processes reached", Math.round(median(eventRates))],
            ["processes: share of one core, all together", median(workerShares)],
            ["server: share of one core", median(serverShares)],
            ["page: share of one core (main thread)", median(pageShares)],
            ["page: memory of scripts, MB", heapMb],
            ["page: tasks above 50 ms while probes were drawn", longTasksMs.length],
            ["page: longest of them, ms", Math.round(Math.max(0, ...longTasksMs))],
            [`circuit opens until it is drawn, p50 ms (${delays.length} of ${probes} drawn)`, percentile(delays, 50)],
            ["circuit opens until it is drawn, p95 ms", percentile(delays, 95)],
            ["processor time of a request, with page / without", median(ratios)],
            ["the same, from", low],
            ["the same, to", high],
          ],
        },
      ],
      figures: [
        atMost("store: processor time of a request, with page / without", median(ratios), CPU_RATIO_MAX),
        atMost("store: ms until a change is drawn, p95", percentile(delays, 95), DELAY_MS_MAX),
      ],
    };
  } finally {
    dashboard.stop();
    for (const worker of workers) worker.stop();
    await redis.stop();
  }
}
