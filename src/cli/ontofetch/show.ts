import { readLock } from "../../ontology/lockfile.ts";
import { openOntologyStore } from "../../ontology/open-ontology-store.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatBytes } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule } from "../program.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf } from "./settings-flags.ts";

/** `ontofetch show`: lists the versions in the store. */
export const show: CommandModule = {
  configure: command => {
    command.argument("[id...]", ARGUMENTS.ontologies).option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile"]);
  },
  run: async (ids, flags, io) => {
    const settings = await ontofetchSettingsOf(flags, io);
    using store = await openOntologyStore(settings.store, systemTime);
    const lock = await readLock(settings.lockfile);
    const all = await store.ids();
    const wanted = ids.length === 0 ? all : all.filter(id => ids.includes(id));
    const versions = (await Promise.all(wanted.map(id => store.versions(id)))).flat();
    const isLocked = (id: string, sha256: string) => lock.get(id)?.sha256 === sha256;
    if (flags["json"]) {
      const found = versions.map(({ path, manifest }) => ({
        id: manifest.id,
        version: manifest.version,
        isLocked: isLocked(manifest.id, manifest.sha256),
        path,
        manifest,
      }));
      printJson(io, { versions: found });
    } else if (versions.length > 0) {
      const rows = versions.map(({ manifest, path }) => [
        manifest.id,
        manifest.version,
        isLocked(manifest.id, manifest.sha256) ? "locked" : "",
        manifest.format,
        formatBytes(manifest.bytes),
        manifest.facts === null ? "?" : String(manifest.facts.terms),
        manifest.fetched_at.slice(0, 16).replace("T", " "),
        manifest.licence ?? "?",
        path,
      ]);
      io.stdout.write(
        formatTable(["id", "version", "lock", "format", "size", "terms", "fetched (UTC)", "licence", "file"], rows, {
          columns: terminalWidth(io.stdout),
        }),
      );
    }
    if (versions.length === 0 && ids.length === 0)
      io.stderr.write(`The store ${settings.store} is empty; "ontofetch pull" fetches the sources of sources.yaml\n`);
    const missing = ids.filter(id => !versions.some(version => version.id === id));
    for (const id of missing) io.stderr.write(`${id}: not in the store\n`);
    return missing.length > 0 ? ExitCode.partial : ExitCode.ok;
  },
};
