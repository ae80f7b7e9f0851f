import { existsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { exportLines, failedWorks, type ManifestReport, reportOf } from "../../harvest/manifest/manifest-report.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatBytes, formatCount } from "../output/format.ts";
import { formatTable } from "../output/table.ts";
import type { CliCommand, Io } from "../program.ts";
import { missingManifestError } from "./retry.ts";
import { addPathFlags, pathsOf } from "./run-settings.ts";

const FAILED_SHOWN = 20;

/** `docstokg status`: what a manifest says. A run may be at work on it meanwhile. */
export const status: CliCommand = {
  name: "status",
  summary: "say what a manifest holds: works, files, failures; or export all of it as JSONL",
  configure: command => {
    addPathFlags(command);
    command
      .option("--export <file>", "write every work with its attempts as a line of JSON, - for stdout")
      .option("--json", "print JSON");
  },
  run: async (_, options, io) => {
    const { manifest: path } = pathsOf(options);
    if (!existsSync(path)) throw missingManifestError(path);
    const manifest = await openManifest(path, systemTime);
    try {
      const target = options["export"];
      if (typeof target === "string") await exportTo(target, exportLines(manifest.db), io);
      else if (options["json"] === true) {
        const failed = failedWorks(manifest.db, FAILED_SHOWN);
        io.stdout.write(
          `${JSON.stringify({ ...reportOf(manifest.db), lastFailed: failed, manifest: path }, undefined, 2)}\n`,
        );
      } else io.stdout.write(statusText(reportOf(manifest.db), failedWorks(manifest.db, FAILED_SHOWN)));
      return ExitCode.ok;
    } finally {
      manifest.close();
    }
  },
};

function statusText({ works, reasons, files, runs }: ManifestReport, failed: ReturnType<typeof failedWorks>): string {
  const [last] = runs;
  const parts = [
    `${formatCount(works.total, "work")}: ${works.done} done, ${works.failed} failed, ${works.pending} not finished`,
    `${formatCount(files.count, "file")}, ${formatBytes(files.bytes)}`,
    ...(last === undefined
      ? []
      : [`last run: ${new Date(last.startedMs).toISOString()}, ${last.state} (${last.command})`]),
  ];
  const table = formatTable(
    ["state", "reason", "works"],
    reasons.map(row => [row.state, row.reason, String(row.works)]),
  );
  const list =
    failed.length === 0
      ? ""
      : `\n${formatTable(
          [`failed${works.failed > failed.length ? `, the last ${failed.length}` : ""}`, "reason", ""],
          failed.map(({ key, reason, message = "" }) => [key, reason, message]),
        )}`;
  return `${parts.join("\n")}\n\n${table}${list}`;
}

/** Whole or not at all: whoever reads the file never finds half of it. */
async function exportTo(target: string, lines: Iterable<string>, io: Io): Promise<void> {
  if (target === "-") {
    for (const line of lines) io.stdout.write(line);
    return;
  }
  const part = `${target}.${process.pid}.part`;
  try {
    await using file = await open(part, "wx", 0o644);
    for (const line of lines) await file.write(line);
    await file.sync();
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  await rename(part, target);
}
