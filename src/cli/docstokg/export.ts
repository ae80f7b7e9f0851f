import { nearest } from "../../core/text/nearest.ts";
import { writeAtomically } from "../../files/atomic-file.ts";
import { exportText, TEXT_FORMATS } from "../../harvest/export/export-lines.ts";
import { parquetFile } from "../../harvest/export/parquet-file.ts";
import type { WorkRecord } from "../../harvest/manifest/manifest-reports.ts";
import { ExitCode } from "../exit-code.ts";
import { checkTarget } from "../file-problems.ts";
import { writeOutput } from "../output/write-output.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addManifestOnlyFlags, pathsOf, readExistingManifest } from "./path-flags.ts";

const FORMATS = [...TEXT_FORMATS, "parquet"] as const;
type ExportFormat = (typeof FORMATS)[number];

/** `docstokg export`: writes the works of a manifest, with their metadata, in the format of another program. */
export const exportCommand: CommandModule = {
  configure: command => {
    addManifestOnlyFlags(command);
    command
      .option("--format <format>", FORMATS.join(", "), "csv")
      .option("--to <file>", "file to write (default: stdout)")
      .option("--state <state>", "only works that are done, failed or pending (default: all)");
  },
  run: async (_, flags, io) => {
    const format = formatOf(String(flags["format"]));
    const state = flags["state"] as string | undefined;
    if (state !== undefined && !["done", "failed", "pending"].includes(state))
      throw usageError("--state", `${JSON.stringify(state)} is not one of done, failed, pending`);
    if (flags["out"] !== undefined && flags["manifest"] !== undefined)
      throw usageError(
        "--out",
        "has no effect with --manifest, which names the manifest; --to names the file to write",
      );
    const target = flags["to"] === "-" ? undefined : (flags["to"] as string | undefined);
    if (format === "parquet" && target === undefined)
      throw usageError("--to", "parquet is not text: name the file to write");
    const source = pathsOf(flags, io).manifest;
    if (target !== undefined) checkTarget("--to", target, [source]);
    const manifest = await readExistingManifest(source);
    try {
      const records = inState(manifest.reports.workRecords(), state);
      if (format === "parquet") await writeAtomically(String(target), parquetFile(records));
      else if (target !== undefined) await writeAtomically(target, exportText(format, records));
      else for await (const part of exportText(format, records)) if (!(await writeOutput(io, part))) break;
      return ExitCode.ok;
    } catch (error) {
      throw manifest.errorFrom(error);
    } finally {
      await manifest.close();
    }
  },
};

async function* inState(records: AsyncIterable<WorkRecord>, state: string | undefined): AsyncIterable<WorkRecord> {
  for await (const record of records) if (state === undefined || record.state === state) yield record;
}

function formatOf(text: string): ExportFormat {
  const format = FORMATS.find(each => each === text);
  if (format !== undefined) return format;
  const near = nearest(text, FORMATS);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw usageError("--format", `${JSON.stringify(text)} is not one of ${FORMATS.join(", ")}${hint}`);
}
