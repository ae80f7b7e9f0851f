/** Whether anything is left behind: the heap after 20,000 requests, and after 200,000. */
import { Agent } from "undici";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { retained } from "../kit/heap.ts";
import { atMost, type Figure } from "../kit/report.ts";
import { openSite } from "./bench-server.ts";
import { type Ask, askAll, bareRequest, CALLERS, hubFetch, hubRequest, newUrls, oneUrl } from "./callers.ts";
import { EventCount, roomyHub } from "./hubs.ts";

interface Subject {
  readonly name: string;
  readonly ask: Ask;
  readonly isOurs: boolean;
}

/** Connections are open, code is compiled, and the cache is full twice over: from here on nothing should grow. */
const FIRST = 20_000;
const ALL = 200_000;
/** The smallest object takes 16 bytes or more: one that each request leaves behind would be 2.9 MB. */
const GROWTH_MB_MAX = 2;
const MB = 1e6;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  // A cache of 10,000 entries has to be full before the heap can be flat.
  const all = isQuick ? FIRST * 1.2 : ALL;
  using site = await openSite();
  const agent = new Agent();
  const listening = { telemetry: [new EventCount().listener] };
  await using off = await roomyHub({ ...listening, cache: false });
  await using caching = await roomyHub(listening);
  const url = oneUrl(site.origin);
  const fresh = newUrls(site.origin);
  const subjects: readonly Subject[] = [
    { name: "undici.request, an Agent", ask: bareRequest(agent, url), isOurs: false },
    { name: "hub.request, cache off", ask: hubRequest(off, url), isOurs: true },
    { name: "hub.fetch, cache off", ask: hubFetch(off, url), isOurs: true },
    { name: "hub.request, misses of a full cache", ask: hubRequest(caching, fresh, "fwd=miss"), isOurs: true },
  ];
  const rows: (string | number)[][] = [];
  const figures: Figure[] = [];
  for (const { name, ask, isOurs } of subjects) {
    const { bytes: first } = await retained(() => askAll(ask, FIRST));
    const { bytes: growth } = await retained(() => askAll(ask, all - FIRST));
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
          `collected four times before each look; the cache held ${counted(entries)} answers, which is its bound`,
        ],
        columns: ["contestant", `first ${counted(FIRST)}, MB`, `next ${counted(all - FIRST)}, MB`, "bytes/request"],
        rows,
      },
    ],
    figures,
  };
}

function counted(number: number): string {
  return number.toLocaleString("en");
}
