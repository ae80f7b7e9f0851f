import { CACHE_RESULTS, CALL_OUTCOMES, type CacheResult } from "../call-outcome.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import { MetricCollector } from "../metric-collector.ts";
import { BreakerTally } from "./breaker-tally.ts";
import { DecisionTally } from "./decision-tally.ts";
import { Distribution } from "./distribution.ts";
import { delaySummary, noOutcomes } from "./host-row.ts";
import { HostTally } from "./host-tally.ts";
import type { HostSummary, KeySummary, Ranked, RunSummary } from "./run-summary.ts";
import { ShadowTally } from "./shadow-tally.ts";
import { type RunTimeline, TimelineTally } from "./timeline.ts";

const TOP = 10;
const HASHES_MAX = 100;
/** Rows of hosts or keys that are summarized at once: about 1 ms of work. */
const ROWS_PER_STEP = 250;
const SUMMED = ["calls", "refreshes", "attempts", "connectFailures", "answers429", "answers503"] as const;

/**
 * Summarizes the events of one run, which must come in the order of their times. The memory does not grow with the number
 * of events: a `Distribution` stores a bounded number of waits, and hosts beyond 20,000 share one row for each role.
 */
export class RunTally {
  readonly #runId: string;
  readonly #hosts = new HostTally();
  readonly #breaker = new BreakerTally();
  readonly #shadow = new ShadowTally();
  readonly #decisions = new DecisionTally();
  readonly #timeline = new TimelineTally();
  readonly #delayMs = new Distribution();
  readonly #hashes = new Set<string>();
  readonly #cache = Object.fromEntries(CACHE_RESULTS.map(result => [result, 0])) as Record<CacheResult, number>;
  readonly #collector = new MetricCollector(
    {
      count: (name, labels) => {
        this.#hosts.count(name, labels);
        this.#breaker.count(name, labels);
        if (name === "http_cache_total") this.#cache[labels.result as CacheResult] += 1;
      },
      observe: (name, ms, labels) => {
        this.#hosts.observe(name, ms, labels);
        this.#breaker.observe(name, ms, labels);
        if (name === "rate_delay_ms") this.#delayMs.add(ms);
      },
    },
    // No limit here: the tallies bound their own memory.
    Number.POSITIVE_INFINITY,
  );
  #start: EventOf<"run_started"> | undefined;
  #hasEnded = false;
  #firstMs = Number.POSITIVE_INFINITY;
  #lastMs = Number.NEGATIVE_INFINITY;
  #events = 0;
  #dropped = 0;

  constructor(runId: string) {
    this.#runId = runId;
  }

  take(event: TelemetryEvent): void {
    this.#events += 1;
    this.#firstMs = Math.min(this.#firstMs, event.ts);
    this.#lastMs = Math.max(this.#lastMs, event.ts);
    if (event.config_hash !== "" && this.#hashes.size < HASHES_MAX) this.#hashes.add(event.config_hash);
    this.#breaker.take(event);
    this.#shadow.take(event);
    this.#decisions.take(event);
    this.#timeline.take(event, this.#collector.take(event));
    if (event.event_type === "aimd_adjust" && typeof event.new === "number")
      this.#hosts.setMultiplier(event.host, event.role, event.new);
    else if (event.event_type === "run_started") this.#start ??= event;
    else if (event.event_type === "run_ended") this.#hasEnded = true;
    else if (event.event_type === "telemetry_dropped") this.#dropped += event.dropped;
  }

  summary(): RunSummary {
    const steps = this.summarySteps();
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  }

  /**
   * The summary in short steps, for a caller that must not block the event loop. Most take about a millisecond; sorting
   * 20,000 rows takes about ten.
   */
  *summarySteps(): Generator<void, RunSummary, void> {
    const outcomes = noOutcomes();
    const sums = { calls: 0, refreshes: 0, attempts: 0, connectFailures: 0, answers429: 0, answers503: 0 };
    const hosts: HostSummary[] = [];
    for (const row of this.#hosts.hosts()) {
      const host = row.summary();
      for (const outcome of CALL_OUTCOMES) outcomes[outcome] += host.outcomes[outcome];
      for (const name of SUMMED) sums[name] += host[name];
      if (hosts.push(host) % ROWS_PER_STEP === 0) yield;
    }
    const limiter = { acquired: 0, blocked: 0, headSkipped: 0 };
    const keys: KeySummary[] = [];
    for (const row of this.#hosts.keys()) {
      const key = row.summary();
      limiter.acquired += key.acquired;
      limiter.blocked += key.blocked;
      limiter.headSkipped += key.headSkipped;
      if (keys.push(key) % ROWS_PER_STEP === 0) yield;
    }
    const topByDelay = ranked(hosts, row => [row.host, row.delayMs.total]);
    const topByBlocks = ranked(keys, row => [row.key, row.blocked]);
    yield;
    hosts.sort((a, b) => b.calls - a.calls || compare(a.host, b.host) || compare(a.role, b.role));
    yield;
    keys.sort(
      (a, b) => b.acquired + b.blocked - a.acquired - a.blocked || compare(a.key, b.key) || compare(a.role, b.role),
    );
    yield;
    const { calls, refreshes, attempts, connectFailures, answers429, answers503 } = sums;
    const { hit, stale, after_request, revalidated, coalesced } = this.#cache;
    const hits = hit + stale;
    const durationMs = this.#events === 0 ? 0 : this.#lastMs - this.#firstMs;
    return {
      runId: this.#runId,
      program: this.#start?.program,
      version: this.#start?.version,
      configHashes: [...this.#hashes],
      startedMs: this.#events === 0 ? 0 : this.#firstMs,
      endedMs: this.#events === 0 ? 0 : this.#lastMs,
      durationMs,
      hasEnded: this.#hasEnded,
      events: this.#events,
      dropped: this.#dropped,
      calls,
      outcomes,
      refreshes,
      cache: { hits, stale, afterRequest: after_request, revalidated, coalesced, hitRate: share(hits, calls) },
      connectFailures,
      throttles: { attempts, answers429, answers503, rate: share(answers429 + answers503, attempts) },
      delayMs: delaySummary(this.#delayMs),
      limiter,
      breaker: this.#breaker.summary(durationMs),
      shadow: this.#shadow.summary(),
      decisions: this.#decisions.summaries(),
      hosts,
      keys,
      topByDelay,
      topByBlocks,
    };
  }

  timeline(): RunTimeline {
    return this.#timeline.timeline();
  }
}

/** Summarizes the events of one run, in the order of their times. Other runs must be filtered out before. */
export async function summarize(
  events: Iterable<TelemetryEvent> | AsyncIterable<TelemetryEvent>,
  runId: string,
): Promise<RunSummary> {
  const tally = new RunTally(runId);
  for await (const event of events) tally.take(event);
  return tally.summary();
}

/** The ten highest sums over all roles of a host; 0 is left out. */
function ranked<Row>(rows: readonly Row[], read: (row: Row) => readonly [string, number]): readonly Ranked[] {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const [host, value] = read(row);
    sums.set(host, (sums.get(host) ?? 0) + value);
  }
  return Array.from(sums, ([host, value]) => ({ host, value }))
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value || compare(a.host, b.host))
    .slice(0, TOP);
}

function share(part: number, total: number): number {
  return total === 0 ? 0 : part / total;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
