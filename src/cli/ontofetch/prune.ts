import { rm } from "node:fs/promises";
import { ConfigError } from "../../errors.ts";
import { FileLock } from "../../files/file-lock.ts";
import { readLock } from "../../ontology/lockfile.ts";
import { OntologyStore, type StoredVersion } from "../../ontology/ontology-store.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import type { CliCommand } from "../program.ts";
import { addOntofetchFlags, formatSize, ontofetchSettingsOf, printJson } from "./settings-flags.ts";

/** `ontofetch prune`: old versions go; what is locked stays, however old it is. */
export const prune: CliCommand = {
  name: "prune",
  summary: "remove old versions; those that are locked stay",
  configure: command => {
    command
      .argument("[id...]")
      .requiredOption("--keep <count>", "how many versions of each to keep, the newest")
      .option("--dry-run", "say what would go, and remove nothing")
      .option("--json", "print JSON");
    addOntofetchFlags(command);
  },
  run: async (ids, options, io) => {
    const keep = Number(options["keep"]);
    if (!(Number.isInteger(keep) && keep >= 1)) {
      const message = `expected a whole number from 1, found ${JSON.stringify(options["keep"])}`;
      throw new ConfigError([{ where: "--keep", path: "", message }]);
    }
    const settings = await ontofetchSettingsOf(options, io);
    const store = new OntologyStore(settings.store);
    const lock = await readLock(settings.lockfile);
    const isDry = options["dryRun"] === true;
    const gone: StoredVersion[] = [];
    for (const id of await store.ids()) {
      if (ids.length > 0 && !ids.includes(id)) continue;
      // Nobody must be about to find a version current that is going.
      await using _lock = await FileLock.take(store.lockPath(id), { time: systemTime });
      if (!isDry) await store.removeDraft(id);
      const old = (await store.versions(id)).slice(keep);
      for (const version of old.filter(({ manifest }) => lock.get(id)?.sha256 !== manifest.sha256)) {
        if (!isDry) await store.remove(version);
        gone.push(version);
      }
    }
    // What a process that was killed has left behind; halves of files stay, they can be gone on with.
    if (!isDry) await rm(store.internalPath("removed"), { recursive: true, force: true });
    const bytes = gone.reduce((sum, { manifest }) => sum + manifest.bytes, 0);
    if (options["json"]) {
      const removed = gone.map(({ id, folder, manifest }) => ({
        id,
        folder,
        version: manifest.version,
        bytes: manifest.bytes,
      }));
      printJson(io, { is_dry_run: isDry, removed, bytes });
    } else {
      for (const { id, manifest } of gone) {
        io.stdout.write(
          `${id} ${manifest.version}: ${isDry ? "would go" : "removed"}, ${formatSize(manifest.bytes)}\n`,
        );
      }
      io.stdout.write(`${gone.length} ${gone.length === 1 ? "version" : "versions"}, ${formatSize(bytes)}\n`);
    }
    return ExitCode.ok;
  },
};
