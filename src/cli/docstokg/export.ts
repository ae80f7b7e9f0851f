import { nearest } from "../../core/text/nearest.ts";
import { writeAtomically } from "../../files/atomic-file.ts";
import { EXPORT_FORMATS, type ExportFormat, exportText } from "../../harvest/export/export-lines.ts";
import type { WorkRecord } from "../../harvest/manifest/manifest-reports.ts";
import { ExitCode } from "../exit-code.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addManifestOnlyFlags, openExistingManifest, pathsOf } from "./path-flags.ts";

/** `docstokg export`: writes the works of a manifest, with their metadata, in the format of another program. */
export const exportCommand: CommandModule = {
  configure: command => {
    addManifestOnlyFlags(command);
    command
      .option("--format <format>", EXPORT_FORMATS.join(", "), "csv")
      .option("--to <file>", "file to write (default: stdout)")
      .option("--state <state>", "only works that are done, failed or pending");
  },
  run: async (_, flags, io) => {
    const format = formatOf(String(flags["format"]));
    const state = flags["state"] as string | undefined;
    if (state !== undefined && !["done", "failed", "pending"].includes(state))
      throw usageError("--state", `${JSON.stringify(state)} is not one of done, failed, pending`);
    if (flags["out"] !== undefined && flags["manifest"] !== undefined)
      throw usageError("--out", "has no effect with --manifest, which names the file");
    const manifest = await openExistingManifest(pathsOf(flags, io).manifest);
    try {
      const parts = exportText(format, inState(manifest.reports.workRecords(), state));
      const target = flags["to"];
      if (typeof target === "string" && target !== "-") await writeAtomically(target, parts);
      else for await (const part of parts) io.stdout.write(part);
      return ExitCode.ok;
    } finally {
      await manifest.close();
    }
  },
};

async function* inState(records: AsyncIterable<WorkRecord>, state: string | undefined): AsyncIterable<WorkRecord> {
  for await (const record of records) if (state === undefined || record.state === state) yield record;
}

function formatOf(text: string): ExportFormat {
  const format = EXPORT_FORMATS.find(each => each === text);
  if (format !== undefined) return format;
  const near = nearest(text, EXPORT_FORMATS);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw usageError("--format", `${JSON.stringify(text)} is not one of ${EXPORT_FORMATS.join(", ")}${hint}`);
}
