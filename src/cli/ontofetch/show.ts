import { readLock } from "../../ontology/lockfile.ts";
import { OntologyStore } from "../../ontology/ontology-store.ts";
import { ExitCode } from "../exit-code.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CliCommand } from "../program.ts";
import { addOntofetchFlags, formatSize, ontofetchSettingsOf, printJson } from "./settings-flags.ts";

/** `ontofetch show`: what lies in the store. */
export const show: CliCommand = {
  name: "show",
  summary: "what lies in the store, and what of it is locked",
  configure: command => {
    command.argument("[id...]").option("--json", "print JSON");
    addOntofetchFlags(command);
  },
  run: async (ids, options, io) => {
    const settings = await ontofetchSettingsOf(options, io);
    const store = new OntologyStore(settings.store);
    const lock = await readLock(settings.lockfile);
    const all = await store.ids();
    const wanted = ids.length === 0 ? all : all.filter(id => ids.includes(id));
    const versions = (await Promise.all(wanted.map(id => store.versions(id)))).flat();
    const isLocked = (id: string, sha256: string) => lock.get(id)?.sha256 === sha256;
    if (options["json"]) {
      const found = versions.map(({ path, manifest }) => ({
        path,
        is_locked: isLocked(manifest.id, manifest.sha256),
        ...manifest,
      }));
      printJson(io, { versions: found });
    } else if (versions.length > 0) {
      const rows = versions.map(({ manifest, path }) => [
        manifest.id,
        manifest.version,
        isLocked(manifest.id, manifest.sha256) ? "locked" : "",
        manifest.format,
        formatSize(manifest.bytes),
        manifest.fetched_at.slice(0, 16).replace("T", " "),
        manifest.licence ?? "?",
        path,
      ]);
      io.stdout.write(
        formatTable(["id", "version", "", "format", "size", "fetched (UTC)", "licence", "file"], rows, {
          columns: terminalWidth(io.stdout),
        }),
      );
    }
    if (versions.length === 0 && ids.length === 0)
      io.stderr.write(`Nothing is in ${settings.store} yet; "ontofetch pull" fetches what sources.yaml names\n`);
    const missing = ids.filter(id => !versions.some(version => version.id === id));
    for (const id of missing) io.stderr.write(`${id}: not in the store\n`);
    return missing.length > 0 ? ExitCode.partial : ExitCode.ok;
  },
};
