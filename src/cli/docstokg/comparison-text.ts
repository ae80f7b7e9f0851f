import type { ComparedNumbers, ComparedRow, RunComparison } from "../../telemetry/report/comparison.ts";
import { countOf, durationOf, momentOf, percentOf, plainText } from "../../telemetry/report/number-text.ts";
import { formatTable } from "../output/table.ts";

const MAX_ROWS = 25;

const COLUMNS: readonly (readonly [title: string, text: (numbers: ComparedNumbers) => string])[] = [
  ["requests", ({ attempts }) => countOf(attempts)],
  ["429", ({ rate429 }) => percentOf(rate429)],
  ["503", ({ rate503 }) => percentOf(rate503)],
  ["mean wait", ({ meanWaitMs }) => durationOf(meanWaitMs)],
  ["breaker openings", ({ opens }) => countOf(opens)],
  ["openings per hour", ({ opensPerHour }) => opensPerHour.toFixed(1)],
  ["refused", ({ denied }) => countOf(denied)],
  ["time saved", ({ timeSavedMs }) => durationOf(timeSavedMs)],
];

/** Two runs as text: each host has two lines, one for each run. */
export function comparisonText({ before, after, total, hosts }: RunComparison, columns: number | undefined): string {
  const rows = [total, ...hosts.slice(0, MAX_ROWS)].flatMap(rowsOf);
  const more = hosts.length - MAX_ROWS;
  return [
    `A  ${headText(before)}\n`,
    `B  ${headText(after)}\n`,
    hasSamePolicy(before, after) ? "Both runs used the same policy.\n" : "",
    `\n${formatTable(["host", "run", ...COLUMNS.map(([title]) => title)], rows, { columns, hidesRepeats: true })}`,
    more > 0 ? `… and ${countOf(more)} more ${more === 1 ? "host" : "hosts"}; --json prints all\n` : "",
  ].join("");
}

/** False if the policy of a run is not known, because its events have no hash of it. */
function hasSamePolicy(before: RunComparison["before"], after: RunComparison["after"]): boolean {
  return before.configHashes.length > 0 && before.configHashes.join() === after.configHashes.join();
}

function headText({ runId, startedMs, durationMs }: RunComparison["before"]): string {
  return `${plainText(runId)}, ${momentOf(startedMs)} UTC, for ${durationOf(durationMs)}`;
}

function rowsOf({ host, before, after }: ComparedRow): readonly (readonly string[])[] {
  const name = host === undefined ? "(all)" : plainText(host);
  const cells = (numbers: ComparedNumbers) => COLUMNS.map(([, text]) => text(numbers));
  return [
    [name, "A", ...cells(before)],
    [name, "B", ...cells(after)],
  ];
}
