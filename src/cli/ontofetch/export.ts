import { ConfigError } from "../../errors.ts";
import { replaceAtomically } from "../../files/atomic-file.ts";
import type { StoredVersion } from "../../ontology/ontology-store.ts";
import {
  EXPORT_FORMATS,
  type VersionExportFormat,
  exportVersion as writeExport,
} from "../../ontology/version-export.ts";
import { ExitCode } from "../exit-code.ts";
import { checkTarget } from "../file-problems.ts";
import { interruptible } from "../interrupts.ts";
import { writeOutput } from "../output/write-output.ts";
import type { CommandModule, Io } from "../program.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf, storedVersion } from "./settings-flags.ts";

/** `ontofetch export hp --format <format>`: writes a stored version in a form that other programs load. */
export const exportVersion: CommandModule = {
  configure: command => {
    command
      .argument("<id>", ARGUMENTS.version)
      .requiredOption("--format <format>", `one of ${EXPORT_FORMATS.join(", ")} (required)`)
      .option("--to <file>", "file to write (default: stdout)");
    addSettingsFlags(command, ["sources", "store", "lockfile"]);
  },
  run: ([name = ""], flags, io) =>
    interruptible(io, async signal => {
      const format = formatOf(String(flags["format"]));
      const output = flags["to"];
      const settings = await ontofetchSettingsOf(flags, io);
      if (typeof output === "string") checkTarget("--to", output, [settings.file, settings.lockfile]);
      const version = await storedVersion(settings, name, signal);
      if (typeof output === "string") checkTarget("--to", output, [version.path]);
      if (typeof output === "string") await exportToFile(output, version, format, signal);
      else await exportToStdout(io, version, format, signal);
      return ExitCode.ok;
    }),
};

async function exportToStdout(
  io: Io,
  version: StoredVersion,
  format: VersionExportFormat,
  signal: AbortSignal,
): Promise<void> {
  const { outputClosed } = io;
  const write = async (text: string) => {
    if (!(await writeOutput(io, text))) outputClosed?.throwIfAborted();
  };
  try {
    await writeExport(version, format, write, signal);
  } catch (error) {
    // The reader has closed stdout (`… | head`): that is not a failure.
    if (signal.aborted || !outputClosed?.aborted) throw error;
  }
}

/** The file appears complete, by one rename, or not at all. */
async function exportToFile(
  path: string,
  version: StoredVersion,
  format: VersionExportFormat,
  signal: AbortSignal,
): Promise<void> {
  // FileHandle.write may write only a part of the text if the disk is full; appendFile never does.
  await replaceAtomically(path, file => writeExport(version, format, text => file.appendFile(text), signal));
}

function formatOf(text: string): VersionExportFormat {
  const format = EXPORT_FORMATS.find(name => name === text);
  if (format !== undefined) return format;
  const message = `unknown format ${JSON.stringify(text)}; expected ${EXPORT_FORMATS.join(", ")}`;
  throw new ConfigError([{ where: "--format", path: "", message }]);
}
