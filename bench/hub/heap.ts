/** Finds leaks: compares the heap after 20,000 requests with the heap after 200,000. */
import { Agent } from "undici";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { retained } from "../kit/heap.ts";
import { atMost, type Figure } from "../kit/report.ts";
import { openBenchServer } from "./bench-server.ts";
import { bareRequest, CALLERS, hubFetch, hubRequest, newUrls, oneUrl, type SendOnce, sendAll } from "./callers.ts";
import { EventCount, hubWithWideLimits } from "./hubs.ts";

interface HeapCase {
  readonly name: string;
  readonly send: SendOnce;
  readonly isOurs: boolean;
}

/**
 * After these requests connections are open, code is compiled and the cache is full: the heap should not grow any more.
 */
const FIRST = 20_000;
const ALL = 200_000;
/** The smallest object takes 16 bytes: if each request left one behind, the heap would grow by 2.9 MB. */
const GROWTH_MB_MAX = 2;
const MB = 1e6;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  // The cache has 10,000 entries and must be full before the first measurement.
  const all = isQuick ? FIRST * 1.2 : ALL;
  using server = await openBenchServer();
  const agent = new Agent();
  const listening = { telemetry: [new EventCount().listener] };
  await using off = await hubWithWideLimits({ ...listening, cache: false });
  await using caching = await hubWithWideLimits(listening);
  const url = oneUrl(server.origin);
  const fresh = newUrls(server.origin);
  const subjects: readonly HeapCase[] = [
    { name: "undici.request, an Agent", send: bareRequest(agent, url), isOurs: false },
    { name: "hub.request, cache off", send: hubRequest(off, url), isOurs: true },
    { name: "hub.fetch, cache off", send: hubFetch(off, url), isOurs: true },
    { name: "hub.request, misses of a full cache", send: hubRequest(caching, fresh, "fwd=miss"), isOurs: true },
  ];
  const rows: (string | number)[][] = [];
  const figures: Figure[] = [];
  for (const { name, send, isOurs } of subjects) {
    const { bytes: first } = await retained(() => sendAll(send, FIRST));
    const { bytes: growth } = await retained(() => sendAll(send, all - FIRST));
    rows.push([name, first / MB, growth / MB, growth / (all - FIRST)]);
    if (isOurs) figures.push(atMost(`${name}: growth after ${counted(FIRST)}, MB`, growth / MB, GROWTH_MB_MAX));
  }
  const { entries = 0 } = caching.snapshot().cache ?? {};
  await agent.close();
  return {
    tables: [
      {
        title: `heap and buffers that ${counted(all)} requests by ${CALLERS} callers leave behind`,
        notes: [
          `four garbage collections before each measurement; the cache held ${counted(entries)} responses, its maximum`,
        ],
        columns: ["library", `first ${counted(FIRST)}, MB`, `next ${counted(all - FIRST)}, MB`, "bytes/request"],
        rows,
      },
    ],
    figures,
  };
}

function counted(number: number): string {
  return number.toLocaleString("en");
}
