/** The dashboard of one hub, in its own process: what the hub's process spends more. */
import type { Browser } from "playwright-core";
import { systemTime } from "../../src/time/system-time.ts";
import type { PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { median, medianRange } from "../kit/statistics.ts";
import { type DashboardLoad, requestsPerSecond } from "./load.ts";
import { WatchedPage } from "./watched-page.ts";
import { Worker } from "./worker.ts";

/** What a page takes of the core is what the hub's throughput loses. */
const SHARE_MAX = 0.03;
const SETTLE_MS = 3000;

export async function measureHub(browser: Browser, load: DashboardLoad): Promise<PartReport> {
  const { hosts, seconds, rounds } = load;
  const settings = { hosts, requestsPerSecond: requestsPerSecond(load) };
  const plain = new Worker(settings);
  const watched = new Worker({ ...settings, hasDashboard: true });
  try {
    const { url } = await watched.counts();
    await plain.counts();
    await systemTime.sleep(SETTLE_MS);
    const plainShares: number[] = [];
    const unseen: number[] = [];
    const seen: number[] = [];
    /** The differences to the process without a dashboard, in the same window. */
    const extra: number[] = [];
    const window = async () => {
      const startUs = systemTime.monotonicUs();
      const [plainBefore, before] = await Promise.all([plain.counts(), watched.counts()]);
      await systemTime.sleep(seconds * 1000);
      const [plainAfter, after] = await Promise.all([plain.counts(), watched.counts()]);
      const elapsedMs = (systemTime.monotonicUs() - startUs) / 1000;
      plainShares.push((plainAfter.cpuMs - plainBefore.cpuMs) / elapsedMs);
      return (after.cpuMs - before.cpuMs) / elapsedMs;
    };
    for (let round = 0; round < rounds; round += 1) {
      unseen.push(await window());
      const page = await WatchedPage.open(browser, url);
      await systemTime.sleep(SETTLE_MS);
      seen.push(await window());
      extra.push((seen.at(-1) ?? 0) - (plainShares.at(-1) ?? 0));
      await page.close();
    }
    const [low, high] = medianRange(extra);
    return {
      tables: [
        {
          title: `dashboard of one hub: ${hosts.length} keys, ${load.eventsPerSecond} events a second; shares of one core`,
          columns: ["process", "share"],
          rows: [
            ["without dashboard", median(plainShares)],
            ["with dashboard, no page", median(unseen)],
            ["with dashboard and page", median(seen)],
            ["more than without dashboard", median(extra)],
            ["the same, from", low],
            ["the same, to", high],
          ],
        },
      ],
      figures: [atMost("hub: share of a core that dashboard and page take", median(extra), SHARE_MAX)],
    };
  } finally {
    plain.stop();
    watched.stop();
  }
}
