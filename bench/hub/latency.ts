/** The time that the hub adds to a request. */
import { Agent } from "undici";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { collectGarbage } from "../kit/heap.ts";
import { atMost, type BenchTable } from "../kit/report.ts";
import { median, percentile } from "../kit/statistics.ts";
import { openBenchServer } from "./bench-server.ts";
import { bareFetch, bareRequest, CALLERS, hubFetch, hubRequest, oneUrl, type SendOnce, sendAll } from "./callers.ts";
import { EventCount, hubWithWideLimits } from "./hubs.ts";

/** The same call without and with the hub. */
interface Pair {
  readonly what: string;
  readonly bare: SendOnce;
  readonly hub: SendOnce;
}

interface LatencyPlan {
  readonly callers: number;
  /** Rounds before the recorded ones, in which V8 compiles. */
  readonly unrecorded: number;
  readonly rounds: number;
  /** In each round. */
  readonly requests: number;
}

/** Microseconds: of one round, or medians over the rounds. */
interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

interface LatencyComparison {
  readonly what: string;
  readonly bare: Percentiles;
  readonly hub: Percentiles;
  /** The median over the rounds of hub minus bare: a slow moment of the machine affects both in the same round. */
  readonly added: Percentiles;
  /** The median over the rounds of the 99th percentile of the hub, divided by that of the bare call. */
  readonly p99Times: number;
}

/** Small compared with the milliseconds of a real service. */
const ADDED_P50_US_MAX = 100;
const ADDED_P99_US_MAX = 500;
const CROWD_P99_TIMES_MAX = 1.3;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  using server = await openBenchServer();
  await using hub = await hubWithWideLimits({ cache: false, telemetry: [new EventCount().listener] });
  const agent = new Agent();
  const url = oneUrl(server.origin);
  const pairs = [
    { what: "request", bare: bareRequest(agent, url), hub: hubRequest(hub, url) },
    { what: "fetch", bare: bareFetch(url), hub: hubFetch(hub, url) },
  ];
  const alonePlan = { callers: 1, unrecorded: 10, rounds: isQuick ? 3 : 31, requests: isQuick ? 100 : 500 };
  // The heap is collected about once in 2,500 requests, also without the hub, and this delays the requests of all 64
  // callers. A round needs many collections: of 3,200 requests, the 99th percentile only says whether there was one.
  const crowdPlan = { callers: CALLERS, unrecorded: 2, rounds: isQuick ? 3 : 11, requests: isQuick ? 640 : 25_600 };
  const alone = await compareAll(pairs, alonePlan);
  const crowd = await compareAll(pairs, crowdPlan);
  await agent.close();
  return {
    tables: [tableOf(alone, alonePlan), tableOf(crowd, crowdPlan)],
    figures: [
      ...alone.flatMap(({ what, added }) => [
        atMost(`hub.${what}, one caller: added p50, us`, added.p50, ADDED_P50_US_MAX),
        atMost(`hub.${what}, one caller: added p99, us`, added.p99, ADDED_P99_US_MAX),
      ]),
      ...crowd.map(({ what, p99Times }) =>
        atMost(`hub.${what}, ${CALLERS} callers: p99 / bare`, p99Times, CROWD_P99_TIMES_MAX),
      ),
    ],
  };
}

async function compareAll(pairs: readonly Pair[], plan: LatencyPlan): Promise<readonly LatencyComparison[]> {
  const outcomes: LatencyComparison[] = [];
  for (const pair of pairs) outcomes.push(await compare(pair, plan));
  return outcomes;
}

async function compare(
  { what, bare, hub }: Pair,
  { callers, unrecorded, rounds, requests }: LatencyPlan,
): Promise<LatencyComparison> {
  const bareRounds: Percentiles[] = [];
  const hubRounds: Percentiles[] = [];
  const turns = [
    { send: bare, results: bareRounds },
    { send: hub, results: hubRounds },
  ];
  for (let round = -unrecorded; round < rounds; round += 1) {
    for (const { send, results } of round % 2 === 0 ? turns : turns.toReversed()) {
      collectGarbage("minor");
      const seen = await percentiles(send, requests, callers);
      if (round >= 0) results.push(seen);
    }
  }
  const added = hubRounds.map(({ p50, p99 }, round) => ({
    p50: p50 - (bareRounds[round]?.p50 ?? Number.NaN),
    p99: p99 - (bareRounds[round]?.p99 ?? Number.NaN),
  }));
  const p99Times = median(hubRounds.map(({ p99 }, round) => p99 / (bareRounds[round]?.p99 ?? Number.NaN)));
  return { what, bare: medians(bareRounds), hub: medians(hubRounds), added: medians(added), p99Times };
}

async function percentiles(send: SendOnce, requests: number, callers: number): Promise<Percentiles> {
  const tookUs: number[] = [];
  const timed = async () => {
    const startMs = performance.now();
    await send();
    tookUs.push((performance.now() - startMs) * 1000);
  };
  await sendAll(timed, requests, callers);
  return { p50: percentile(tookUs, 50), p99: percentile(tookUs, 99) };
}

function medians(rounds: readonly Percentiles[]): Percentiles {
  return { p50: median(rounds.map(({ p50 }) => p50)), p99: median(rounds.map(({ p99 }) => p99)) };
}

function tableOf(outcomes: readonly LatencyComparison[], { callers, rounds, requests }: LatencyPlan): BenchTable {
  return {
    title: `microseconds until the body is complete, ${callers === 1 ? "one caller" : `${callers} callers`}, cache off`,
    notes: [
      `medians over ${rounds} rounds of ${requests.toLocaleString("en")} requests`,
      "added: hub minus bare within a round, then the median",
    ],
    columns: ["", "bare p50", "hub p50", "added p50", "bare p99", "hub p99", "added p99"],
    rows: outcomes.map(({ what, bare, hub, added }) => [
      what,
      bare.p50,
      hub.p50,
      added.p50,
      bare.p99,
      hub.p99,
      added.p99,
    ]),
  };
}
