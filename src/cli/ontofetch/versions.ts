import { DownloadError } from "../../errors.ts";
import { readLock } from "../../ontology/lockfile.ts";
import type { Ontofetch } from "../../ontology/ontofetch.ts";
import { listsVersions } from "../../ontology/planner.ts";
import type { Source } from "../../ontology/resolver.ts";
import { labelOf } from "../../ontology/version-label.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { printJson } from "../output/json.ts";
import { printable } from "../output/printable.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule } from "../program.ts";
import { openOntofetch } from "./open-ontofetch.ts";
import { ARGUMENTS, addSettingsFlags, chosenSources, ontofetchSettingsOf, RATE_FLAGS } from "./settings-flags.ts";

interface VersionRow {
  readonly version: string;
  readonly isStored: boolean;
  readonly isLocked: boolean;
  readonly isListed: boolean;
}

/** `ontofetch versions hp`: versions in the store, in the lockfile and at the service, if it lists them. */
export const versions: CommandModule = {
  configure: command => {
    command.argument("<id>", ARGUMENTS.source).option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile", ...RATE_FLAGS]);
  },
  run: ([id = ""], flags, io) =>
    interruptible(io, async signal => {
      const settings = await ontofetchSettingsOf(flags, io);
      const [source] = chosenSources(settings, [id]);
      if (source === undefined) return ExitCode.usage;
      const ontofetch = await openOntofetch(settings, io, { signal });
      const { stored, listed, message } = await knownVersions(ontofetch, source, signal).finally(() =>
        ontofetch.close("versions"),
      );
      const locked = (await readLock(settings.lockfile)).get(source.id)?.version;
      const rows = rowsOf(
        listed.map(({ version }) => labelOf(version)),
        stored.map(({ manifest }) => manifest.version),
        locked,
      );
      if (flags["json"])
        printJson(io, { id: source.id, versions: rows, ...(message === undefined ? {} : { message }) });
      else {
        const cells = rows.map(row => [
          row.version,
          row.isStored ? "stored" : "",
          row.isLocked ? "locked" : "",
          row.isListed ? "listed" : "",
        ]);
        io.stdout.write(
          formatTable(["version", "store", "lock", "service"], cells, { columns: terminalWidth(io.stdout) }),
        );
        if (message !== undefined) io.stderr.write(`${source.id}: ${printable(message)}\n`);
      }
      return message === undefined || !listsVersions(source) ? ExitCode.ok : ExitCode.partial;
    }),
};

/** If the service lists no versions or could not be asked, the message says so. The stored versions are printed anyway. */
async function knownVersions(ontofetch: Ontofetch, source: Source, signal: AbortSignal) {
  const stored = await ontofetch.store.versions(source.id);
  try {
    return { stored, listed: await ontofetch.versions(source), message: undefined };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof DownloadError)) throw error;
    return { stored, listed: [], message: error.message };
  }
}

function rowsOf(
  listed: readonly string[],
  stored: readonly string[],
  locked: string | undefined,
): readonly VersionRow[] {
  const all = new Set([...listed, ...stored, ...(locked === undefined ? [] : [locked])]);
  return [...all].map(version => ({
    version,
    isStored: stored.includes(version),
    isLocked: version === locked,
    isListed: listed.includes(version),
  }));
}
