/** Acquires units through a file that the processes of one machine share. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atLeast, atMost, type Figure } from "../kit/report.ts";
import { median } from "../kit/statistics.ts";
import { compareLoads, type StoreComparison, tableOf } from "./comparison.ts";
import { openFolder } from "./folder.ts";
import { EACH, NOTHING, TOGETHER } from "./round.ts";
import { WorkerPool } from "./worker-pool.ts";

const PER_SECOND_MIN = 10_000;
const STALL_MS_MAX = 20;
const ENTRANTS = { oneCaller: [EACH], manyCallers: [EACH, TOGETHER, NOTHING] };

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  using folder = openFolder();
  const options = isQuick ? { rounds: 3, ms: 60 } : { rounds: 15, ms: 300 };
  const outcomes: StoreComparison[] = [];
  for (const processes of [1, 4]) {
    const at = folder.file(`${processes}.db`);
    await using pool = await WorkerPool.start(processes, { kind: "sqlite", at });
    outcomes.push(...(await compareLoads(pool, processes, ENTRANTS, options)));
  }
  return { tables: outcomes.map(outcome => tableOf(outcome, options)), figures: outcomes.flatMap(figuresOf) };
}

function figuresOf(outcome: StoreComparison): readonly Figure[] {
  const { processes, callers, keys } = outcome.setting;
  const ours = [...outcome.scores].filter(([entrant]) => entrant !== NOTHING);
  const stalls = ours.flatMap(([entrant, { longestStallMs, longestStallCpuMs }]) => [
    atMost(`SQLite, ${outcome.title}, ${entrant}: longest stall, ms`, longestStallMs, STALL_MS_MAX),
    atMost(`SQLite, ${outcome.title}, ${entrant}: longest stall, ms of its CPU`, longestStallCpuMs, STALL_MS_MAX),
  ]);
  if (processes === 1 || callers === 1 || keys > 1) return stalls;
  const perSecond = median(outcome.score(TOGETHER).perSecond);
  return [atLeast(`SQLite, ${outcome.title}, ${TOGETHER}: acquires/s`, perSecond, PER_SECOND_MIN), ...stalls];
}
