import { open, rename, rm } from "node:fs/promises";
import { ConfigError } from "../../errors.ts";
import {
  EXPORT_FORMATS,
  type VersionExportFormat,
  exportVersion as writeExport,
} from "../../ontology/version-export.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import type { CommandModule } from "../program.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf, storedVersion } from "./settings-flags.ts";

/** `ontofetch export hp --format <format>`: writes a stored version in a form that other programs load. */
export const exportVersion: CommandModule = {
  configure: command => {
    command
      .argument("<id>", ARGUMENTS.version)
      .requiredOption("--format <format>", `one of ${EXPORT_FORMATS.join(", ")} (required)`)
      .option("--output <file>", "write to a file instead of stdout");
    addSettingsFlags(command, ["sources", "store", "lockfile"]);
  },
  run: ([name = ""], flags, io) =>
    interruptible(io, async signal => {
      const format = formatOf(String(flags["format"]));
      const version = await storedVersion(await ontofetchSettingsOf(flags, io), name, signal);
      const output = flags["output"];
      if (typeof output !== "string") {
        await writeExport(version, format, async text => void io.stdout.write(text), signal);
        return ExitCode.ok;
      }
      // The file appears complete, by one rename, or not at all.
      const part = `${output}.part`;
      try {
        await using file = await open(part, "w");
        await writeExport(version, format, async text => void (await file.write(text)), signal);
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
      await rename(part, output);
      return ExitCode.ok;
    }),
};

function formatOf(text: string): VersionExportFormat {
  const format = EXPORT_FORMATS.find(name => name === text);
  if (format !== undefined) return format;
  const message = `unknown format ${JSON.stringify(text)}; expected ${EXPORT_FORMATS.join(", ")}`;
  throw new ConfigError([{ where: "--format", path: "", message }]);
}
