/**
 * The cost of the hub itself: requests over a dispatcher that responds at once. Kernel, server and parser are not
 * involved, so a change of our code shows here first.
 */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { race, timingOptions } from "../kit/timing.ts";
import { bareRequest, CALLERS, hubFetch, hubRequest, newUrls, oneUrl } from "./callers.ts";
import { EventCount, hubWithWideLimits } from "./hubs.ts";
import { InstantWire } from "./instant-wire.ts";
import { RequestCase } from "./request-case.ts";

const BARE = "undici.request";
const OFF = "hub.request, cache off";
const HIT = "hub.request, cache hit";
const MISS = "hub.request, cache miss, stored";
const FETCH_OFF = "hub.fetch, cache off";
const FETCH_MISS = "hub.fetch, cache miss, stored";
/** A name and not an address, because programs call names, and names take less time to recognise. */
const ORIGIN = "https://api.example.org";
const OFF_TIMES_MAX = 2;
const HIT_TIMES_MAX = 2;
const STORED_MISS_ADDED_US_MAX = 15;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const dispatcher = new InstantWire();
  const listening = { dispatcher, telemetry: [new EventCount().listener] };
  await using off = await hubWithWideLimits({ ...listening, cache: false });
  await using quiet = await hubWithWideLimits({ dispatcher, cache: false });
  await using caching = await hubWithWideLimits(listening);
  // A cache of its own: enough misses would evict the response that the hits are served from.
  await using storing = await hubWithWideLimits(listening);
  const url = oneUrl(ORIGIN);
  await hubRequest(caching, url, "fwd=miss")();
  const entrants = [
    new RequestCase(BARE, bareRequest(dispatcher, url)),
    new RequestCase(`${OFF}, no listener`, hubRequest(quiet, url)),
    new RequestCase(OFF, hubRequest(off, url)),
    new RequestCase(MISS, hubRequest(storing, newUrls(ORIGIN), "fwd=miss")),
    new RequestCase(HIT, hubRequest(caching, url, "hit")),
    new RequestCase(FETCH_OFF, hubFetch(off, url)),
    new RequestCase(FETCH_MISS, hubFetch(storing, newUrls(`${ORIGIN}/fetched`), "fwd=miss")),
  ];
  const result = await race(entrants, timingOptions(isQuick));
  return {
    tables: [
      {
        title: `microseconds for a request over a dispatcher that responds at once, ${CALLERS} callers`,
        notes: [
          "undici.request creates a promise and a stream for each request; the difference is the cost of the hub",
        ],
        columns: ["library", "us/request", "added us", "times bare"],
        rows: entrants.map(({ name }) => [
          name,
          result.ns(name) / 1000,
          (result.ns(name) - result.ns(BARE)) / 1000,
          result.ratio(name, BARE),
        ]),
      },
    ],
    figures: [
      atMost(`no network: ${OFF} / ${BARE}`, result.ratio(OFF, BARE), OFF_TIMES_MAX),
      atMost(`no network: ${HIT} / ${BARE}`, result.ratio(HIT, BARE), HIT_TIMES_MAX),
      atMost(
        "no network: us that storing adds to hub.request",
        (result.ns(MISS) - result.ns(OFF)) / 1000,
        STORED_MISS_ADDED_US_MAX,
      ),
      atMost(
        "no network: us that storing adds to hub.fetch",
        (result.ns(FETCH_MISS) - result.ns(FETCH_OFF)) / 1000,
        STORED_MISS_ADDED_US_MAX,
      ),
    ],
  };
}
