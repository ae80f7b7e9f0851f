/** Compares stores in short rounds, in turns, with one process or several. Ratios are taken within a round. */
import { availableParallelism } from "node:os";
import type { BenchTable } from "../kit/report.ts";
import { median, percentile } from "../kit/statistics.ts";
import type { RoundResult } from "./round.ts";
import type { WorkerPool } from "./worker-pool.ts";

export interface LoadSetting {
  readonly processes: number;
  readonly callers: number;
  readonly keys: number;
}

export interface ComparisonOptions {
  readonly rounds: number;
  readonly ms: number;
}

const UNRECORDED_ROUNDS = 4;

/** The rounds of one case. */
export class Score {
  readonly perSecond: number[] = [];
  readonly #p50Us: number[] = [];
  readonly #p99Us: number[] = [];
  readonly #stallMs: number[] = [];
  readonly #stallCpuMs: number[] = [];
  #maxUs = 0;
  #failed = 0;

  add(results: readonly RoundResult[]): void {
    const tookUs = results.flatMap(result => [...result.tookUs]);
    this.perSecond.push(results.reduce((sum, result) => sum + result.perSecond, 0));
    this.#p50Us.push(percentile(tookUs, 50));
    this.#p99Us.push(percentile(tookUs, 99));
    this.#maxUs = Math.max(this.#maxUs, percentile(tookUs, 100));
    this.#stallMs.push(Math.max(...results.map(({ stallMs }) => stallMs)));
    this.#stallCpuMs.push(Math.max(...results.map(({ stallCpuMs }) => stallCpuMs)));
    this.#failed += results.reduce((sum, { failed }) => sum + failed, 0);
  }

  /** The ratio of the units, taken within each round. */
  times(other: Score): number {
    return median(this.perSecond.map((rate, round) => rate / (other.perSecond[round] ?? Number.NaN)));
  }

  get longestStallMs(): number {
    return Math.max(...this.#stallMs);
  }

  get longestStallCpuMs(): number {
    return Math.max(...this.#stallCpuMs);
  }

  cells(): readonly number[] {
    return [
      median(this.perSecond),
      median(this.#p50Us) / 1000,
      median(this.#p99Us) / 1000,
      this.#maxUs / 1000,
      median(this.#stallMs),
      this.longestStallMs,
      this.longestStallCpuMs,
      this.#failed,
    ];
  }
}

export class StoreComparison {
  readonly setting: LoadSetting;
  readonly scores: ReadonlyMap<string, Score>;

  constructor(setting: LoadSetting, scores: ReadonlyMap<string, Score>) {
    this.setting = setting;
    this.scores = scores;
  }

  score(entrant: string): Score {
    const score = this.scores.get(entrant);
    if (score === undefined) throw new RangeError(`${entrant} was not measured`);
    return score;
  }

  get title(): string {
    const { processes, callers, keys } = this.setting;
    return `${many(processes, "process", "es")}, ${many(callers, "caller")} each, ${many(keys, "key")}`;
  }
}

/** Compares the cases with 64 callers and with one, each on one key and on 64. */
export async function compareLoads(
  pool: WorkerPool,
  processes: number,
  entrants: { readonly oneCaller: readonly string[]; readonly manyCallers: readonly string[] },
  options: ComparisonOptions,
): Promise<readonly StoreComparison[]> {
  const outcomes: StoreComparison[] = [];
  // Cases with many calls first: their code is compiled when a single caller is measured.
  for (const callers of [64, 1]) {
    const compared = callers === 1 ? entrants.oneCaller : entrants.manyCallers;
    for (const keys of [1, 64])
      outcomes.push(await compareStores(pool, compared, { processes, callers, keys }, options));
  }
  return outcomes;
}

async function compareStores(
  pool: WorkerPool,
  entrants: readonly string[],
  setting: LoadSetting,
  { rounds, ms }: ComparisonOptions,
): Promise<StoreComparison> {
  const { callers, keys } = setting;
  const scores = new Map(entrants.map(entrant => [entrant, new Score()]));
  for (let round = -UNRECORDED_ROUNDS; round < rounds; round += 1) {
    // The order changes, so that no case always follows the same one.
    for (const entrant of round % 2 === 0 ? entrants : entrants.toReversed()) {
      const results = await pool.run({ entrant, callers, keys, ms });
      if (round >= 0) scores.get(entrant)?.add(results);
    }
  }
  return new StoreComparison(setting, scores);
}

/** With a column for each of the `others`, by its heading: the ratio of the units. */
export function tableOf(
  outcome: StoreComparison,
  { rounds, ms }: ComparisonOptions,
  others: ReadonlyMap<string, string> = new Map(),
): BenchTable {
  return {
    title: outcome.title,
    notes: [
      `milliseconds; medians over ${rounds} rounds of ${ms} ms, in turns; the longest of all rounds where it says so`,
      `stall: of the event loop, among ${many(outcome.setting.processes, "process", "es")} on ${many(availableParallelism(), "core")}, measured up to 1 ms too long`,
      "its CPU: the largest CPU time of one process between two turns of its event loop; other processes do not count",
    ],
    columns: [
      "library",
      "acquires/s",
      ...Array.from(others.values(), heading => `times ${heading}`),
      "p50",
      "p99",
      "longest",
      "stall",
      "longest stall",
      "its CPU",
      "failed",
    ],
    rows: Array.from(outcome.scores, ([entrant, score]) => {
      const [perSecond, ...rest] = score.cells();
      return [entrant, perSecond, ...Array.from(others.keys(), other => score.times(outcome.score(other))), ...rest];
    }),
  };
}

function many(count: number, what: string, plural = "s"): string {
  return `${count} ${what}${count === 1 ? "" : plural}`;
}
