/** Acquires units through a Redis server, compared with rate-limiter-flexible on the same server. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atLeast, type Figure } from "../kit/report.ts";
import { compareLoads, type StoreComparison, tableOf } from "./comparison.ts";
import { PEER_COLUMNS, SINGLE, UNION } from "./peer.ts";
import { EACH, LIMITER, TOGETHER } from "./round.ts";
import { noServer, openServer } from "./server.ts";
import { WorkerPool } from "./worker-pool.ts";

/** Two windows of `RateLimiter`, compared with one window or two of rate-limiter-flexible. */
const TIMES_MIN = 1;
const ENTRANTS = {
  oneCaller: [SINGLE, UNION, LIMITER, EACH],
  manyCallers: [SINGLE, UNION, LIMITER, EACH, TOGETHER],
};

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  await using server = await openServer();
  if (server === undefined) return noServer();
  const options = isQuick ? { rounds: 3, ms: 40 } : { rounds: 21, ms: 150 };
  const outcomes: StoreComparison[] = [];
  for (const processes of [1, 4]) {
    await using pool = await WorkerPool.start(processes, { kind: "redis", at: server.url });
    outcomes.push(...(await compareLoads(pool, processes, ENTRANTS, options)));
  }
  return {
    tables: outcomes.map(outcome => tableOf(outcome, options, PEER_COLUMNS)),
    figures: outcomes.flatMap(figuresOf),
  };
}

function figuresOf(outcome: StoreComparison): readonly Figure[] {
  const ours = outcome.score(LIMITER);
  return [SINGLE, UNION].map(peer =>
    atLeast(`Redis, ${outcome.title}: two windows / ${peer}`, ours.times(outcome.score(peer)), TIMES_MIN),
  );
}
