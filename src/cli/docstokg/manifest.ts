import { ConfigError } from "../../errors.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { copyManifest } from "../../harvest/manifest/manifest-copy.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import type { CommandModule, Subcommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { manifestOf, readExistingManifest } from "./path-flags.ts";

const copy: Subcommand = {
  name: "copy",
  summary: "copy a manifest, a file or in PostgreSQL, into an empty one",
  configure: command => {
    command
      .argument("<from>", "manifest file, or postgres://user@host/database")
      .argument("<to>", "manifest file or PostgreSQL URL, which must have no works")
      .option("--json", "print JSON");
  },
  run: async ([from = "", to = ""], flags, io) => {
    const names = [manifestOf("<from>", from), manifestOf("<to>", to)] as const;
    if (names[0] === names[1]) throw usageError("manifest copy", "<from> and <to> are the same manifest");
    const source = await named("<from>", readExistingManifest(names[0], "<from>"));
    try {
      const target = await named("<to>", openManifest(names[1], systemTime));
      try {
        const rows = await copyManifest(source, target);
        if (flags["json"] === true) printJson(io, { from: source.name, to: target.name, rows });
        else {
          const { works, files, attempts } = rows;
          const counts = [formatCount(works, "work"), formatCount(files, "file"), formatCount(attempts, "attempt")];
          io.stdout.write(`Copied ${counts.join(", ")} from ${source.name} to ${target.name}\n`);
        }
        return ExitCode.ok;
      } catch (error) {
        throw target.errorFrom(error);
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
};

/** If a manifest cannot be opened, the error names the argument, because this command has no `--manifest`. */
async function named<Opened>(argument: string, opening: Promise<Opened>): Promise<Opened> {
  try {
    return await opening;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problems = error.problems.map(({ where, path, message }) => ({
      where: where === "--manifest" ? argument : where,
      path,
      message: message.replace(/[,;] (?:or )?(?:choose|name) [\w ]+ with --manifest$/, ""),
    }));
    throw new ConfigError(problems, { cause: error });
  }
}

/** `docstokg manifest`. */
export const manifestCommand: CommandModule = { commands: [copy] };
