import { writeAtomically } from "../../files/atomic-file.ts";
import { actualRunState } from "../../harvest/manifest/actual-run-state.ts";
import type { Manifest } from "../../harvest/manifest/manifest.ts";
import type { FailedWork, ManifestReport } from "../../harvest/manifest/manifest-reports.ts";
import type { ManifestWorker } from "../../harvest/manifest/manifest-workers.ts";
import { ExitCode } from "../exit-code.ts";
import { checkTarget } from "../file-problems.ts";
import { formatDuration } from "../output/duration.ts";
import { formatBytes, formatCount } from "../output/format.ts";
import { formatTable, type TableOptions, terminalWidth } from "../output/table.ts";
import { addWatchFlags, showView } from "../output/watch.ts";
import { writeOutput } from "../output/write-output.ts";
import type { CommandModule, Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addManifestOnlyFlags, pathsOf, readExistingManifest } from "./path-flags.ts";

const MAX_FAILED_SHOWN = 10;

/** `docstokg status`: prints a manifest. A run may write to it at the same time. */
export const status: CommandModule = {
  configure: command => {
    addManifestOnlyFlags(command);
    command.option("--export <file>", "export every work with its attempts as JSONL; - for stdout");
    addWatchFlags(command);
  },
  run: async (_, flags, io) => {
    checkFlags(flags);
    const source = pathsOf(flags, io).manifest;
    const target = flags["export"];
    if (typeof target === "string" && target !== "-") checkTarget("--export", target, [source]);
    const manifest = await readExistingManifest(source);
    try {
      if (typeof target === "string") {
        await exportTo(target, manifest.reports.attemptLines(), io);
        return ExitCode.ok;
      }
      return await showView(flags, io, {
        read: () => statusOf(manifest),
        text: status => statusText(status, { columns: terminalWidth(io.stdout) }),
      });
    } catch (error) {
      throw manifest.errorFrom(error);
    } finally {
      await manifest.close();
    }
  },
};

interface ManifestStatus extends ManifestReport {
  readonly lastFailed: readonly FailedWork[];
  /** Empty for a manifest file. */
  readonly workers: readonly ManifestWorker[];
  /** How long the works that are left take at the pace of the workers; undefined if that is not known. */
  readonly timeLeftMs: number | undefined;
  readonly manifest: string;
}

async function statusOf(manifest: Manifest): Promise<ManifestStatus> {
  const { reports, name } = manifest;
  const [report, lastFailed, workers] = await Promise.all([
    reports.report(),
    reports.failedWorks(MAX_FAILED_SHOWN),
    reports.workers(),
  ]);
  const perMs = workers.filter(({ isAlive }) => isAlive).reduce((sum, worker) => sum + paceOf(worker), 0);
  const timeLeftMs = perMs > 0 ? Math.round(report.works.pending / perMs) : undefined;
  return { ...(await withActualState(report, manifest)), lastFailed, workers, timeLeftMs, manifest: name };
}

/** Works per millisecond. */
function paceOf({ done, failed, elapsedMs }: ManifestWorker): number {
  return elapsedMs > 0 ? (done + failed) / elapsedMs : 0;
}

async function withActualState(report: ManifestReport, manifest: Manifest): Promise<ManifestReport> {
  const [last, ...earlier] = report.runs;
  if (last === undefined) return report;
  return { ...report, runs: [{ ...last, state: await actualRunState(manifest, last) }, ...earlier] };
}

function checkFlags(flags: Flags): void {
  if (flags["out"] !== undefined && flags["manifest"] !== undefined)
    throw usageError("--out", "has no effect with --manifest, which names the manifest");
  for (const flag of ["json", "watch"])
    if (flags[flag] !== undefined && flags["export"] !== undefined)
      throw usageError(`--${flag}`, "has no effect with --export, which writes JSONL");
}

function statusText(status: ManifestStatus, tableOptions: TableOptions): string {
  const { works, reasons, files, runs, lastFailed: failed, workers, timeLeftMs } = status;
  const [last] = runs;
  const parts = [
    `${formatCount(works.total, "work")}: ${works.done} done, ${works.failed} failed, ${works.pending} unfinished`,
    ...(works.merged > 0 ? [`${formatCount(works.merged, "identifier")} merged with another of the same work`] : []),
    `${formatCount(files.count, "file")}, ${formatBytes(files.bytes)}`,
    ...(last === undefined
      ? []
      : [`last run: ${new Date(last.startedMs).toISOString()}, ${stateText(last.state)} (${visible(last.command)})`]),
  ];
  if (timeLeftMs !== undefined && works.pending > 0) {
    const alive = workers.filter(({ isAlive }) => isAlive).length;
    parts.push(`about ${formatDuration(timeLeftMs)} left at the pace of ${formatCount(alive, "worker")}`);
  }
  const workerTable = workers.length === 0 ? "" : `\n${workersTable(workers, tableOptions)}`;
  const reasonCells = reasons.map(row => [row.state, row.reason, String(row.works)]);
  const table = formatTable(["state", "reason", "works"], reasonCells, tableOptions);
  if (failed.length === 0) return `${parts.join("\n")}\n${workerTable}\n${table}`;
  const heading = works.failed > failed.length ? `failed (last ${failed.length})` : "failed";
  const failedCells = failed.map(({ key, reason, message = "" }) => [visible(key), reason, visible(message)]);
  const list = formatTable([heading, "reason", "message"], failedCells, tableOptions);
  return `${parts.join("\n")}\n${workerTable}\n${table}\n${list}`;
}

function stateText(state: string): string {
  return state === "waiting" ? "waiting for docstokg worker" : state;
}

function workersTable(workers: readonly ManifestWorker[], tableOptions: TableOptions): string {
  const cells = workers.map(worker => [
    visible(worker.name),
    String(worker.run),
    worker.isAlive ? (worker.isListing ? "listing" : "working") : "lease ended",
    formatDuration(worker.elapsedMs),
    String(worker.taken),
    String(worker.inFlight),
    String(worker.done),
    String(worker.failed),
    `${(paceOf(worker) * 60_000).toFixed(1)}/min`,
    formatBytes(worker.bytes),
  ]);
  const headings = ["worker", "run", "state", "time", "taken", "in flight", "done", "failed", "pace", "bytes"];
  return formatTable(headings, cells, tableOptions);
}

/** Characters that are not seen or change the direction of text are spelled out: they could forge a line. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

async function exportTo(target: string, lines: AsyncIterable<string>, io: Io): Promise<void> {
  if (target !== "-") return writeAtomically(target, lines);
  for await (const line of lines) if (!(await writeOutput(io, line))) break;
}
