import { writeAtomically } from "../../files/atomic-file.ts";
import type { Manifest } from "../../harvest/manifest/manifest.ts";
import type { FailedWork, ManifestReport } from "../../harvest/manifest/manifest-reports.ts";
import { ExitCode } from "../exit-code.ts";
import { formatBytes, formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { formatTable, type TableOptions, terminalWidth } from "../output/table.ts";
import type { CommandModule, Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addManifestOnlyFlags, openExistingManifest, pathsOf } from "./path-flags.ts";

const MAX_FAILED_SHOWN = 10;

/** `docstokg status`: prints a manifest. A run may write to it at the same time. */
export const status: CommandModule = {
  configure: command => {
    addManifestOnlyFlags(command);
    command
      .option("--export <file>", "export every work with its attempts as JSONL; - for stdout")
      .option("--json", "print JSON");
  },
  run: async (_, flags, io) => {
    checkFlags(flags);
    const manifest = await openExistingManifest(pathsOf(flags, io).manifest);
    try {
      const target = flags["export"];
      if (typeof target === "string") {
        await exportTo(target, manifest.reports.attemptLines(), io);
        return ExitCode.ok;
      }
      const report = await withStopped(await manifest.reports.report(), manifest);
      const lastFailed = await manifest.reports.failedWorks(MAX_FAILED_SHOWN);
      if (flags["json"] === true) printJson(io, { ...report, lastFailed, manifest: manifest.name });
      else io.stdout.write(statusText(report, lastFailed, { columns: terminalWidth(io.stdout) }));
      return ExitCode.ok;
    } finally {
      await manifest.close();
    }
  },
};

/** A run that was killed could not record its end. While a run works, it holds the lock of the manifest. */
async function withStopped(report: ManifestReport, manifest: Manifest): Promise<ManifestReport> {
  const [last, ...earlier] = report.runs;
  if (last?.state !== "running") return report;
  const lock = await manifest.tryLock();
  lock?.release();
  return lock === undefined ? report : { ...report, runs: [{ ...last, state: "stopped" }, ...earlier] };
}

function checkFlags(flags: Flags): void {
  if (flags["out"] !== undefined && flags["manifest"] !== undefined)
    throw usageError("--out", "has no effect with --manifest, which names the file");
  if (flags["json"] !== undefined && flags["export"] !== undefined)
    throw usageError("--json", "has no effect with --export, which writes JSONL");
}

function statusText(
  { works, reasons, files, runs }: ManifestReport,
  failed: readonly FailedWork[],
  tableOptions: TableOptions,
): string {
  const [last] = runs;
  const parts = [
    `${formatCount(works.total, "work")}: ${works.done} done, ${works.failed} failed, ${works.pending} unfinished`,
    ...(works.merged > 0 ? [`${formatCount(works.merged, "identifier")} merged with another of the same work`] : []),
    `${formatCount(files.count, "file")}, ${formatBytes(files.bytes)}`,
    ...(last === undefined
      ? []
      : [`last run: ${new Date(last.startedMs).toISOString()}, ${last.state} (${visible(last.command)})`]),
  ];
  const reasonCells = reasons.map(row => [row.state, row.reason, String(row.works)]);
  const table = formatTable(["state", "reason", "works"], reasonCells, tableOptions);
  if (failed.length === 0) return `${parts.join("\n")}\n\n${table}`;
  const heading = works.failed > failed.length ? `failed (last ${failed.length})` : "failed";
  const failedCells = failed.map(({ key, reason, message = "" }) => [visible(key), reason, visible(message)]);
  const list = formatTable([heading, "reason", "message"], failedCells, tableOptions);
  return `${parts.join("\n")}\n\n${table}\n${list}`;
}

/** Characters that are not seen or change the direction of text are spelled out: they could forge a line. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

async function exportTo(target: string, lines: AsyncIterable<string>, io: Io): Promise<void> {
  if (target !== "-") return writeAtomically(target, lines);
  for await (const line of lines) io.stdout.write(line);
}
