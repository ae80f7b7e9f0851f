import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConfigError } from "../../errors.ts";
import { writeAtomically } from "../../files/atomic-file.ts";
import { type WorksReport, worksReport } from "../../harvest/report/works-report.ts";
import { worksSection } from "../../harvest/report/works-section.ts";
import {
  type ListedRun,
  openTelemetryFile,
  RUN_FILES,
  type TelemetryFile,
} from "../../telemetry/reading/telemetry-file.ts";
import { compareRuns } from "../../telemetry/report/comparison.ts";
import { plainText } from "../../telemetry/report/number-text.ts";
import { type RunReport, reportOn } from "../../telemetry/report/run-report.ts";
import type { RunSummary } from "../../telemetry/summary/run-summary.ts";
import { ExitCode } from "../exit-code.ts";
import { checkTarget } from "../file-problems.ts";
import { printJson } from "../output/json.ts";
import { terminalWidth } from "../output/table.ts";
import type { CommandModule, Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { comparisonText } from "./comparison-text.ts";
import { manifestOf, pathsOf, readExistingManifest, telemetryFolderOf } from "./path-flags.ts";
import { reportText, worksText } from "./report-text.ts";

/** `docstokg report`: the summary of a run, from its telemetry. */
export const report: CommandModule = {
  configure: command => {
    command
      .argument(
        "[run]",
        "folder of a run, telemetry file, or run id (a prefix is enough); without it the latest that has made calls",
      )
      .argument("[other]", "a second run: compare both, by host")
      .option("-o, --out <folder>", "output folder of the run, or s3://bucket/prefix (default: current folder)")
      .option("--telemetry <file>", "file or folder in which to find the run id (default: that of --out)")
      .option(
        "--manifest <manifest>",
        "add the works of this manifest: a file, or postgres://user@host/database (default: the one beside the telemetry)",
      )
      .option("--html <file>", "write an HTML report with charts")
      .option("--json", "print JSON");
  },
  run: async ([run, other], flags, io) => {
    const telemetry = telemetryOf(flags, io);
    if (other !== undefined) return compare(run ?? "", other, telemetry, flags, io);
    const { file, path, runs, runReport } = await readRun(run, telemetry);
    try {
      const html = flags["html"];
      const manifest = manifestBeside(flags["manifest"], path);
      if (typeof html === "string") {
        const telemetryFiles = [path, ...Object.values(RUN_FILES).map(name => join(path, name))];
        checkTarget("--html", html, manifest === undefined ? telemetryFiles : [...telemetryFiles, manifest]);
      }
      const works = manifest === undefined ? undefined : await worksOf(manifest);
      if (typeof html === "string")
        await writeAtomically(html, runReport.page(works && worksSection(works, runReport.summary).text));
      if (flags["json"]) {
        const otherRuns = runs.map(({ runId: id }) => id).filter(id => id !== runReport.summary.runId);
        const { unreadable, unknown } = runReport.skipped;
        printJson(io, {
          ...runReport.summary,
          ...{ unreadableLines: unreadable, unknownEvents: unknown, otherRuns },
          ...(works && { works }),
        });
      } else {
        io.stdout.write(reportText(runReport, runs.length - 1, terminalWidth(io.stdout)));
        if (works !== undefined) io.stdout.write(`\n${worksText(works, terminalWidth(io.stdout))}`);
        if (typeof html === "string") io.stdout.write(`\nHTML report: ${html}\n`);
      }
      return ExitCode.ok;
    } finally {
      file.close();
    }
  },
};

/** Compares two runs, such as before and after a change of the policy. */
async function compare(
  before: string,
  after: string,
  telemetry: string | undefined,
  flags: Flags,
  io: Io,
): Promise<ExitCode> {
  if (flags["manifest"] !== undefined) throw usageError("--manifest", "has no effect when two runs are compared");
  if (flags["html"] !== undefined) throw usageError("--html", "has no effect when two runs are compared");
  const summaries: RunSummary[] = [];
  for (const run of [before, after]) {
    const { file, runReport } = await readRun(run, telemetry);
    file.close();
    summaries.push(runReport.summary);
  }
  const [first, second] = summaries as [RunSummary, RunSummary];
  const comparison = compareRuns(first, second);
  if (flags["json"]) printJson(io, comparison);
  else io.stdout.write(comparisonText(comparison, terminalWidth(io.stdout)));
  return ExitCode.ok;
}

/** The path that `--telemetry` or `--out` names. */
function telemetryOf({ telemetry, out, manifest }: Flags, io: Io): string | undefined {
  if (telemetry === undefined) return out === undefined ? undefined : telemetryFolderOf(pathsOf({ out, manifest }, io));
  if (out !== undefined) throw usageError("--out", "has no effect with --telemetry, which names the telemetry");
  return String(telemetry);
}

interface ReadRun {
  /** To be closed by the caller. */
  readonly file: TelemetryFile;
  /** The telemetry file or folder. */
  readonly path: string;
  readonly runs: readonly ListedRun[];
  readonly runReport: RunReport;
}

async function readRun(run: string | undefined, telemetry: string | undefined): Promise<ReadRun> {
  const { path, wanted } = telemetryPathOf(run, telemetry);
  const file = await openTelemetryFile(path).catch(error => {
    throw path === "." ? runNotFound(run, error) : error;
  });
  try {
    const runs = await file.runs();
    const { runId } = chosenRun(runs, wanted, path);
    return { file, path, runs, runReport: await reportOn(file, runId) };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** The named manifest, or the manifest file beside the telemetry; undefined if there is none. */
function manifestBeside(named: unknown, telemetry: string): string | undefined {
  if (named !== undefined) return manifestOf("--manifest", String(named));
  const folder = statSync(telemetry).isDirectory() ? telemetry : dirname(telemetry);
  const beside = join(folder, "manifest.sqlite");
  return existsSync(beside) ? beside : undefined;
}

async function worksOf(source: string): Promise<WorksReport> {
  const manifest = await readExistingManifest(source);
  try {
    return await worksReport(manifest);
  } catch (error) {
    throw manifest.errorFrom(error);
  } finally {
    await manifest.close();
  }
}

/** An argument that is an existing path is a path; any other argument is a run id. */
function telemetryPathOf(
  run: string | undefined,
  telemetry: string | undefined,
): { readonly path: string; readonly wanted: string | undefined } {
  if (telemetry !== undefined) return { path: telemetry, wanted: run };
  return run !== undefined && existsSync(run) ? { path: run, wanted: undefined } : { path: ".", wanted: run };
}

/** A mistyped folder is taken for a run id, so the message must cover both. */
function runNotFound(run: string | undefined, cause: unknown): unknown {
  if (!(cause instanceof ConfigError)) return cause;
  if (run === undefined)
    return usageError("[run]", "no telemetry in the current folder; name the folder of a run, such as papers");
  return usageError(run, "no such file or folder, and no telemetry in the current folder to find a run with this id");
}

/**
 * The run whose id is `wanted` or starts with it. If `wanted` is undefined, the latest run that has made a call: a retry
 * with nothing to do must not hide the run before it.
 */
function chosenRun(runs: readonly ListedRun[], wanted: string | undefined, path: string): ListedRun {
  const latest = runs.at(-1);
  if (latest === undefined) throw usageError(path, "contains no events");
  if (wanted === undefined) return runs.findLast(({ hasCalls }) => hasCalls) ?? latest;
  const exact = runs.find(({ runId }) => runId === wanted);
  const [first, second] = runs.filter(({ runId }) => runId.startsWith(wanted));
  if (exact !== undefined) return exact;
  if (first === undefined) {
    const latestIds = runs.slice(-5).map(({ runId }) => plainText(runId));
    throw usageError(path, `run ${JSON.stringify(wanted)} not found; latest runs: ${latestIds.join(", ")}`);
  }
  if (second !== undefined)
    throw usageError(path, `several run ids start with ${JSON.stringify(wanted)}; give a longer prefix`);
  return first;
}
