/** Nanoseconds per decision: allowed and refused, with one and two windows, with one key and with ten thousand. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { scatteredHosts } from "../kit/hosts.ts";
import { atMost, type BenchTable, type Figure } from "../kit/report.ts";
import { SkippingTime } from "../kit/skipping-time.ts";
import { asyncCase, syncCase } from "../kit/timed-case.ts";
import { race, type TimingResult, timingOptions } from "../kit/timing.ts";
import { keyed, type LimiterCase } from "./limiter-case.ts";
import { DEFAULT_RATES, FULL, fullLimiter, limiterOf } from "./ours.ts";
import { allowingPeers, heavyPeers, refusingPeers, UNKEYED_PEER } from "./peers.ts";

/** Never full within a run. A log of this limit stores only every 5,000,000th stamp. */
const ENDLESS = { oneWindow: "1000000000/SECOND", twoWindows: "1000000000/SECOND+1000000000/HOUR" } as const;

/** The case of the targets. Every ratio is relative to it. */
const OURS = "docstokg tryAcquire({ host }), 2 windows";
const OURS_1 = "docstokg tryAcquire({ host }), 1 window";
const OURS_SLIDING = `docstokg tryAcquire({ host }), ${DEFAULT_RATES} sliding`;

/**
 * The distance at which the tightest window of DEFAULT_RATES never refuses: 3600.025 s / (5000 - 24). 24 is the number
 * of units by which the log of the hour, which stores only some stamps, may be too strict.
 */
const SLIDE_US = 725_000;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const tables: BenchTable[] = [];
  const figures: Figure[] = [];
  for (const keys of [1, 10_000]) {
    const hosts = scatteredHosts(keys);
    const label = keys === 1 ? "1 key" : `${keys.toLocaleString("en")} keys`;
    const allowing = [...ourAllowing(hosts), ...allowingPeers(hosts)];
    const allowed = await race(allowing, timingOptions(isQuick));
    tables.push(tableOf(`allowed, ${label}`, allowing, allowed));
    figures.push(...figuresOf(`allowed, ${label}`, [OURS, OURS_SLIDING], allowing, allowed));
    const refusing = [...ourRefusing(hosts), ...(await refusingPeers(hosts, FULL.after))];
    const refused = await race(refusing, timingOptions(isQuick));
    tables.push(tableOf(`refused, ${label}`, refusing, refused));
    figures.push(...figuresOf(`refused, ${label}`, [OURS], refusing, refused));
  }
  const heavy = [...ourAllowing(scatteredHosts(1)).slice(0, 1), ...heavyPeers(scatteredHosts(1))];
  tables.push(
    tableOf(
      "allowed, 1 key, libraries that start a job for every call",
      heavy,
      await race(heavy, timingOptions(isQuick)),
    ),
  );
  return { tables, figures };
}

/** Each case has its own limiter, so that no case uses the state of another. */
function ourAllowing(hosts: readonly string[]): readonly LimiterCase[] {
  const one = limiterOf(ENDLESS.oneWindow);
  const two = limiterOf(ENDLESS.twoWindows);
  const named = limiterOf(ENDLESS.twoWindows);
  const released = limiterOf(ENDLESS.twoWindows);
  const awaited = limiterOf(ENDLESS.twoWindows);
  const time = new SkippingTime();
  const sliding = limiterOf(DEFAULT_RATES, time);
  const stepUs = Math.ceil(SLIDE_US / hosts.length);
  const trySliding = (host: string) => {
    time.skippedUs += stepUs;
    return sliding.tryAcquire({ host }) !== undefined;
  };
  const tryAndRelease = (host: string) => {
    const grant = released.tryAcquire({ host });
    grant?.release();
    return grant !== undefined;
  };
  const tryNamed = (host: string) => named.tryAcquire({ host, role: "metadata" }) !== undefined;
  return [
    syncCase(keyed(OURS, 2), hosts, host => two.tryAcquire({ host }) !== undefined, true),
    syncCase(keyed(OURS_1, 1), hosts, host => one.tryAcquire({ host }) !== undefined, true),
    syncCase(keyed(OURS_SLIDING, 2), hosts, trySliding, true),
    syncCase(keyed("docstokg tryAcquire({ host, role }), 2 windows", 2), hosts, tryNamed, true),
    syncCase(keyed("docstokg tryAcquire({ host }) and release(), 2 windows", 2), hosts, tryAndRelease, true),
    asyncCase(keyed("docstokg await acquire({ host })", 2), hosts, host => awaited.acquire({ host }), true),
  ];
}

function ourRefusing(hosts: readonly string[]): readonly LimiterCase[] {
  const one = fullLimiter(FULL.oneWindow, hosts);
  const two = fullLimiter(FULL.twoWindows, hosts);
  const acquire = (host: string) => two.acquire({ host, maxWaitMs: 0 });
  return [
    syncCase(keyed(OURS, 2), hosts, host => two.tryAcquire({ host }) !== undefined, false),
    syncCase(keyed(OURS_1, 1), hosts, host => one.tryAcquire({ host }) !== undefined, false),
    asyncCase(keyed("docstokg await acquire({ host, maxWaitMs: 0 })", 2), hosts, acquire, false),
  ];
}

function tableOf(title: string, entrants: readonly LimiterCase[], result: TimingResult): BenchTable {
  const columns = ["library", "windows", "keys", "ns/call", "times ours"];
  const rows = entrants.map(({ name, windows, keys }) => [
    name,
    windows,
    keys,
    result.ns(name),
    result.ratio(name, OURS),
  ]);
  return { title, columns, rows };
}

function figuresOf(
  title: string,
  ours: readonly string[],
  entrants: readonly LimiterCase[],
  result: TimingResult,
): readonly Figure[] {
  const keyedPeers = entrants.filter(({ name, keys, windows }) => keys === "own" && windows === 1 && !isOurs(name));
  return ours.flatMap(name => {
    const worst = Math.max(...keyedPeers.map(peer => result.ratio(name, peer.name)));
    return [
      atMost(`${title}: ${name} / fastest keyed peer with 1 window`, worst, 1),
      atMost(`${title}: ${name} / ${UNKEYED_PEER}`, result.ratio(name, UNKEYED_PEER), 1.5),
    ];
  });
}

function isOurs(name: string): boolean {
  return name.startsWith("docstokg");
}
