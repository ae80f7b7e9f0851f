import { availableParallelism } from "node:os";
import type { PrintedLine } from "./chaos-process.ts";
import type { JudgedEpisode } from "./judge.ts";
import type { ServerCounts } from "./strict-server.ts";

export interface ChaosReport {
  readonly store: string;
  readonly mode: string;
  readonly seed: number;
  readonly seconds: number;
  readonly processes: number;
  readonly limit: string;
  /** The most writes in any window, over all processes. */
  readonly most: number;
  readonly written: number;
  /** Writes divided by what the limit permits, over the whole run. */
  readonly utilisation: number;
  readonly server: ServerCounts;
  /** Load average of the machine over the last five minutes: a starved fleet recovers late. */
  readonly load: number;
  readonly episodes: readonly (JudgedEpisode & { readonly lines: number })[];
  readonly printed: readonly PrintedLine[];
  /** Errors that callers got, with their number. */
  readonly errors: Readonly<Record<string, number>>;
  readonly missing: readonly string[];
  readonly broken: readonly string[];
}

export function reportText(report: ChaosReport): string {
  const { store, mode, seed, seconds, processes, limit, most, written, utilisation, server, broken } = report;
  const kinds = [...Map.groupBy(report.episodes, ({ fault }) => fault)].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = kinds.map(([fault, episodes]) => [
    fault,
    String(episodes.length),
    String(Math.max(...episodes.map(episode => episode.most))),
    recoveryText(episodes),
    String(Math.max(...episodes.map(({ lines }) => lines))),
  ]);
  return [
    `${store}, mode ${mode}, seed ${seed}: ${report.episodes.length - 1} faults in ${Math.round(seconds)} s, ` +
      `${processes} processes, limit ${limit}`,
    `written ${written}, most in any window ${most}, utilisation ${utilisation.toFixed(2)}; ` +
      `server: ${server.arrived} arrived, ${server.rejected} rejected, ${server.busiest} in its busiest window`,
    `load of the machine ${report.load.toFixed(1)} on ${availableParallelism()} cores`,
    "",
    ...table([["fault", "times", "most", "recovery ms (median, worst)", "lines"], ...rows]),
    "",
    ...report.missing.map(reason => `not done: ${reason}`),
    ...Object.entries(report.errors).map(([text, count]) => `${count} x ${text}`),
    ...printedLines(report.printed),
    "",
    ...broken.map(text => `BROKEN ${text}`),
    broken.length === 0
      ? "every promise was kept"
      : `${broken.length} promises broken; the same faults again: npm run chaos -- --store ${store} --mode ${mode} --seed ${seed}`,
  ].join("\n");
}

/** Equal lines once, with their number: process ids, times and file names of this run are left out of the comparison. */
function printedLines(printed: readonly PrintedLine[]): readonly string[] {
  const same = Map.groupBy(printed, ({ line }) =>
    line.replace(/^\(node:\d+\) /, "").replace(/\d+(?:\.\d+)? m?s$/, "…"),
  );
  return [...same].map(([line, lines]) => {
    const processes = [...new Set(lines.map(({ process }) => process))].sort().join(" ");
    return `stderr, ${lines.length} x, processes ${processes}: ${line}`;
  });
}

function recoveryText(episodes: readonly JudgedEpisode[]): string {
  const times = episodes.map(({ recoveryMs }) => recoveryMs ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
  const text = (ms: number | undefined) => (ms === undefined || !Number.isFinite(ms) ? "none" : String(ms));
  return `${text(times[Math.floor((times.length - 1) / 2)])}, ${text(times.at(-1))}`;
}

function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? [];
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
