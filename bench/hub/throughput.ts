/** Requests per second with and without the hub. */
import { Agent } from "undici";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atLeast, type BenchTable } from "../kit/report.ts";
import { race, type TimingResult } from "../kit/timing.ts";
import { BODY } from "./answer.ts";
import { openBenchServer } from "./bench-server.ts";
import { bareFetch, bareRequest, CALLERS, hubFetch, hubRequest, newUrls, oneUrl } from "./callers.ts";
import { EventCount, hubWithWideLimits } from "./hubs.ts";
import { RequestCase } from "./request-case.ts";

const BARE = "undici.request, an Agent";
const OFF = "hub.request, cache off";
const HIT = "hub.request, cache hit";
const BARE_FETCH = "Node's fetch";
const OFF_FETCH = "hub.fetch, cache off";
const HIT_FETCH = "hub.fetch, cache hit";
const SHARE_MIN = 0.95;
const HIT_TIMES_MIN = 3;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const options = isQuick ? { rounds: 3, sampleMs: 40 } : { rounds: 21, sampleMs: 250 };
  using server = await openBenchServer();
  const events = new EventCount();
  const listening = { telemetry: [events.listener] };
  await using off = await hubWithWideLimits({ ...listening, cache: false });
  await using quiet = await hubWithWideLimits({ cache: false });
  await using caching = await hubWithWideLimits(listening);
  // A cache of its own: enough misses would evict the response that the hits are served from.
  await using storing = await hubWithWideLimits(listening);
  await using agent = closing(new Agent());
  const url = oneUrl(server.origin);
  const fresh = newUrls(server.origin);
  // Stored before the measurement, so that every measured request is a hit.
  await hubRequest(caching, url, "fwd=miss")();
  const requests = [
    new RequestCase(BARE, bareRequest(agent.value, url)),
    new RequestCase(OFF, hubRequest(off, url)),
    new RequestCase(`${OFF}, no listener`, hubRequest(quiet, url)),
    new RequestCase("hub.request, cache miss, stored", hubRequest(storing, fresh, "fwd=miss")),
    new RequestCase(HIT, hubRequest(caching, url, "hit")),
  ];
  const fetches = [
    new RequestCase(BARE_FETCH, bareFetch(url)),
    new RequestCase(OFF_FETCH, hubFetch(off, url)),
    new RequestCase("hub.fetch, cache miss, stored", hubFetch(storing, fresh, "fwd=miss")),
    new RequestCase(HIT_FETCH, hubFetch(caching, url, "hit")),
  ];
  const byRequest = await race(requests, options);
  const byFetch = await race(fetches, options);
  if (events.count === 0) throw new Error("no event was emitted");
  return {
    tables: [tableOf(requests, byRequest, options.rounds), tableOf(fetches, byFetch, options.rounds)],
    figures: [
      atLeast(`${OFF} / ${BARE}, requests per second`, speed(byRequest, OFF, BARE), SHARE_MIN),
      atLeast(`${HIT} / ${BARE}, requests per second`, speed(byRequest, HIT, BARE), HIT_TIMES_MIN),
      atLeast(`${OFF_FETCH} / ${BARE_FETCH}, requests per second`, speed(byFetch, OFF_FETCH, BARE_FETCH), SHARE_MIN),
      atLeast(
        `${HIT_FETCH} / ${BARE_FETCH}, requests per second`,
        speed(byFetch, HIT_FETCH, BARE_FETCH),
        HIT_TIMES_MIN,
      ),
    ],
  };
}

/** The ratio of the throughputs, taken within each round. */
function speed(result: TimingResult, name: string, other: string): number {
  return result.ratio(other, name);
}

function tableOf(entrants: readonly RequestCase[], result: TimingResult, rounds: number): BenchTable {
  const [bare] = entrants as [RequestCase];
  return {
    title: `requests by ${CALLERS} callers, ${BODY.length} bytes of JSON from another process, limits that do not bind`,
    notes: [
      "limiter, breaker and a listener that counts; the ratios are taken within a round, then their median",
      "CPU: of the client's process, its collector included; the quieter measure, as others may use the machine too",
    ],
    columns: ["library", "requests/s", "times bare", "CPU us/request", "CPU times bare"],
    rows: entrants.map(entrant => [
      entrant.name,
      1e9 / result.ns(entrant.name),
      speed(result, entrant.name, bare.name),
      entrant.cpuUs(rounds),
      entrant.cpuRatio(bare, rounds),
    ]),
  };
}

function closing(value: Agent): AsyncDisposable & { readonly value: Agent } {
  return { value, [Symbol.asyncDispose]: () => value.close() };
}
