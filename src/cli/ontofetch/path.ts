import { ExitCode } from "../exit-code.ts";
import { printJson } from "../output/json.ts";
import type { CommandModule } from "../program.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf, storedVersion } from "./settings-flags.ts";

/** `ontofetch path hp`: the absolute path of the locked version, of the newest, or of `hp@<version>`. */
export const path: CommandModule = {
  configure: command => {
    command.argument("<id>", ARGUMENTS.version).option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile"]);
  },
  run: async ([name = ""], flags, io) => {
    const { id, manifest, path: file } = await storedVersion(await ontofetchSettingsOf(flags, io), name);
    if (flags["json"]) printJson(io, { id, version: manifest.version, format: manifest.format, path: file });
    else io.stdout.write(`${file}\n`);
    return ExitCode.ok;
  },
};
