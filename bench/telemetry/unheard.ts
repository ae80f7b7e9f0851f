/**
 * What a channel without subscribers costs a request. A few per cent are less than two equal hubs of one process differ,
 * and a program has one telemetry: each pair of hubs has a process of its own. Pairs of equal hubs show how far the
 * measurement itself is off.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { median, medianRange } from "../kit/statistics.ts";

const UNHEARD_TIMES_MAX = 1.02;
const PAIRS = 20;
const ROUNDS = 100;
const CASES = { channel: "channel without subscribers", none: "no telemetry, again" } as const;
const program = join(import.meta.dirname, "unheard-pair.ts");

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const ratios = { channel: [] as number[], none: [] as number[] };
  for (let pair = 0; pair < (isQuick ? 2 : PAIRS); pair += 1)
    for (const kind of ["channel", "none"] as const) ratios[kind].push(await ratioOf(kind, isQuick ? 4 : ROUNDS));
  return {
    tables: [
      {
        title: "processor time of a request over a wire that answers at once, times that of a hub without telemetry",
        notes: [
          `median of ${ratios.none.length} pairs of hubs, each in its own process`,
          "the true median is in the range with a confidence of 95 %",
        ],
        columns: ["case", "ratio", "from", "to"],
        rows: (["channel", "none"] as const).map(kind => [
          CASES[kind],
          median(ratios[kind]),
          ...medianRange(ratios[kind]),
        ]),
      },
    ],
    figures: [atMost(`no network: ${CASES.channel} / no telemetry`, median(ratios.channel), UNHEARD_TIMES_MAX)],
  };
}

async function ratioOf(kind: keyof typeof CASES, rounds: number): Promise<number> {
  const args = ["--expose-gc", program, kind, String(rounds)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}
