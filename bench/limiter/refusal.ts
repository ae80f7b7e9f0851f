/** The time until a call that may not wait is refused. Every call is timed alone; the contract allows 100 µs. */
import { RateLimiter as UnkeyedLimiter } from "limiter";
import { RateLimiterMemory } from "rate-limiter-flexible";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { median, percentile } from "../kit/statistics.ts";
import { FULL, fullLimiter } from "./ours.ts";

const CONTRACT_US = 100;
/** The target is the contract divided by this factor, because other machines are slower and busier. */
const MARGIN = 100;
const WAITING = 200;
const HOST = "host.example.org";

interface Refuser {
  readonly name: string;
  /** Returns or rejects at once, and never grants. */
  refuse(): unknown;
}

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const ours = ourRefusers();
  const refusers = [
    { name: "nothing: the two readings of the clock", refuse: () => false },
    ...ours,
    ...(await peers()),
  ];
  const samplesUs = new Map(refusers.map(refuser => [refuser, [] as number[]]));
  const rounds = isQuick ? 4 : 40;
  // One more round than is recorded: code is compiled during the first one.
  for (let round = 0; round <= rounds; round += 1) {
    for (const refuser of refusers) {
      const samples = await timedUs(refuser, 2500);
      if (round > 0) samplesUs.get(refuser)?.push(...samples);
    }
  }
  const rows = refusers.map(refuser => {
    const samples = samplesUs.get(refuser) ?? [];
    return { name: refuser.name, medianUs: median(samples), p99Us: percentile(samples, 99) };
  });
  return {
    tables: [
      {
        title: "refused, one call at a time",
        notes: [`${rounds * 2500} calls each; two full windows for us, one for the peers`],
        columns: ["library", "median µs", "p99 µs", `${CONTRACT_US} µs / median`],
        rows: rows.map(({ name, medianUs, p99Us }) => [name, medianUs, p99Us, CONTRACT_US / medianUs]),
      },
    ],
    figures: rows
      .filter(({ name }) => ours.some(refuser => refuser.name === name))
      .map(({ name, medianUs }) => atMost(`${name}: median µs`, medianUs, CONTRACT_US / MARGIN)),
  };
}

function ourRefusers(): readonly Refuser[] {
  const full = fullLimiter(FULL.twoWindows, [HOST]);
  const crowded = fullLimiter(FULL.twoWindows, [HOST]);
  for (let made = 0; made < WAITING; made += 1) {
    // These calls would wait for an hour; the process ends before.
    void crowded.acquire({ host: HOST, maxWaitMs: Number.POSITIVE_INFINITY });
  }
  return [
    { name: "docstokg tryAcquire", refuse: () => full.tryAcquire({ host: HOST }) !== undefined },
    { name: `docstokg tryAcquire, ${WAITING} waiting`, refuse: () => crowded.tryAcquire({ host: HOST }) !== undefined },
    { name: "docstokg acquire({ maxWaitMs: 0 })", refuse: () => full.acquire({ host: HOST, maxWaitMs: 0 }) },
    {
      name: `docstokg acquire({ maxWaitMs: 0 }), ${WAITING} waiting`,
      refuse: () => crowded.acquire({ host: HOST, maxWaitMs: 0 }),
    },
  ];
}

async function peers(): Promise<readonly Refuser[]> {
  const flexible = new RateLimiterMemory({ points: 1, duration: 3600 });
  await flexible.consume(HOST);
  const limiter = new UnkeyedLimiter({ tokensPerInterval: 1, interval: "hour" });
  limiter.tryRemoveTokens(1);
  return [
    { name: "rate-limiter-flexible consume", refuse: () => flexible.consume(HOST) },
    { name: "limiter tryRemoveTokens", refuse: () => limiter.tryRemoveTokens(1) },
  ];
}

async function timedUs({ name, refuse }: Refuser, calls: number): Promise<readonly number[]> {
  const samples: number[] = [];
  while (samples.length < calls) {
    let isGranted: unknown = false;
    const startMs = performance.now();
    try {
      const answer = refuse();
      // Only a promise is awaited.
      isGranted = answer instanceof Promise ? await answer : answer;
    } catch (refusal) {
      if (refusal instanceof TypeError) throw refusal;
    }
    samples.push((performance.now() - startMs) * 1000);
    if (isGranted !== false) throw new Error(`${name} granted a call that it should refuse`);
  }
  return samples;
}
