/**
 * Bytes that a request allocates, over a dispatcher that responds at once: what the hub adds to undici. Allocation is what
 * a garbage collector works for, and it does not depend on the load of the machine.
 */
import { Dispatcher1Wrapper } from "undici";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { allocated } from "../kit/heap.ts";
import { atMost } from "../kit/report.ts";
import { median } from "../kit/statistics.ts";
import { bareFetch, bareRequest, CALLERS, hubFetch, hubRequest, oneUrl, type SendOnce, sendAll } from "./callers.ts";
import { EventCount, hubWithWideLimits } from "./hubs.ts";
import { InstantWire } from "./instant-wire.ts";

interface AllocationCase {
  readonly name: string;
  readonly send: SendOnce;
  /** The same call without the hub; undefined if this one has none. */
  readonly bare?: string;
  /** Bytes that the hub may add. */
  readonly addedMax?: number;
}

const BARE = "undici.request";
const BARE_FETCH = "Node's fetch";
const KB = 1024;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const rounds = isQuick ? 3 : 9;
  const requests = isQuick ? 1000 : 4000;
  const dispatcher = new InstantWire();
  await using quiet = await hubWithWideLimits({ dispatcher, cache: false });
  await using off = await hubWithWideLimits({ dispatcher, cache: false, telemetry: [new EventCount().listener] });
  const url = oneUrl("https://api.example.org");
  const cases: readonly AllocationCase[] = [
    { name: BARE, send: bareRequest(dispatcher, url) },
    { name: "hub.request, no listener", send: hubRequest(quiet, url), bare: BARE, addedMax: 2 * KB },
    { name: "hub.request, a listener", send: hubRequest(off, url), bare: BARE },
    { name: BARE_FETCH, send: bareFetch(url, new Dispatcher1Wrapper(dispatcher)) },
    { name: "hub.fetch, no listener", send: hubFetch(quiet, url), bare: BARE_FETCH },
    { name: "hub.fetch, a listener", send: hubFetch(off, url), bare: BARE_FETCH },
  ];
  const bytes = new Map<string, number>();
  for (const { name, send } of cases) {
    // Code that is not compiled yet allocates more.
    await sendAll(send, requests * 3);
    const samples: number[] = [];
    for (let round = 0; round < rounds; round += 1)
      samples.push((await allocated(() => sendAll(send, requests))) / requests);
    bytes.set(name, median(samples));
  }
  const of = (name: string) => bytes.get(name) ?? Number.NaN;
  return {
    tables: [
      {
        title: `bytes that a request allocates, ${CALLERS} callers, cache off`,
        notes: [`medians over ${rounds} rounds of ${requests.toLocaleString("en")} requests`],
        columns: ["contestant", "bytes/request", "added by the hub"],
        rows: cases.map(({ name, bare }) => [name, of(name), bare === undefined ? undefined : of(name) - of(bare)]),
      },
    ],
    figures: cases.flatMap(({ name, bare, addedMax }) =>
      bare === undefined || addedMax === undefined
        ? []
        : [atMost(`no network: ${name}: bytes added`, of(name) - of(bare), addedMax)],
    ),
  };
}
