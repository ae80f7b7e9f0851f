import { FileLock } from "../../files/file-lock.ts";
import { readLock } from "../../ontology/lockfile.ts";
import { nameHint } from "../../ontology/name-hint.ts";
import type { OntologyStore, StoredVersion } from "../../ontology/ontology-store.ts";
import { openOntologyStore } from "../../ontology/open-ontology-store.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatBytes, formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { printable } from "../output/printable.ts";
import type { CommandModule } from "../program.ts";
import { usageError, wholeNumberFlag } from "../usage-error.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf } from "./settings-flags.ts";

/** `ontofetch prune`: removes old versions; a locked version is kept, however old it is. */
export const prune: CommandModule = {
  configure: command => {
    command
      .argument("[id...]", ARGUMENTS.ontologies)
      .requiredOption("--keep <count>", "number of newest versions to keep per ontology (required)")
      .option("--dry-run", "print what would be removed, remove nothing")
      .option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile"]);
  },
  run: async (ids, flags, io) => {
    const keepCount = wholeNumberFlag("--keep", flags["keep"], 1);
    const settings = await ontofetchSettingsOf(flags, io);
    using store = await openOntologyStore(settings.store, systemTime);
    const isDryRun = flags["dryRun"] === true;
    const removedVersions: StoredVersion[] = [];
    const stored = await store.ids();
    const unknown = ids.find(id => !stored.includes(id));
    if (unknown !== undefined) {
      const hint = stored.length === 0 ? "the store is empty" : nameHint(unknown, stored);
      throw usageError("<id>", `no version of ${JSON.stringify(unknown)} in the store; ${hint}`);
    }
    for (const id of stored) {
      if (ids.length > 0 && !ids.includes(id)) continue;
      // A pull that runs now must not report a version as current while it is removed.
      await using _lock = await FileLock.acquire(store.work.lockPath(id), {
        time: systemTime,
        onWait: () => io.stderr.write(`${id}: another process has its lock; waiting\n`),
      });
      // Read after the wait: the pull may have locked another version.
      const lock = await readLock(settings.lockfile);
      const versions = await store.versions(id);
      const intact = await newestIntact(store, versions);
      const isKept = (version: StoredVersion) => version === intact || lock.get(id)?.sha256 === version.manifest.sha256;
      for (const version of versions.slice(keepCount).filter(candidate => !isKept(candidate))) {
        if (!isDryRun) await store.remove(version);
        removedVersions.push(version);
      }
      // Partial downloads are kept: a pull can resume them.
      if (!isDryRun) await store.removeLeftovers(id);
    }
    const bytes = removedVersions.reduce((sum, { manifest }) => sum + manifest.bytes, 0);
    if (flags["json"]) {
      const removed = removedVersions.map(({ id, folder, manifest }) => ({
        id,
        folder,
        version: manifest.version,
        bytes: manifest.bytes,
      }));
      printJson(io, { isDryRun, removed, bytes });
    } else {
      for (const { id, manifest } of removedVersions) {
        io.stdout.write(
          `${printable(`${id} ${manifest.version}`)}: ${isDryRun ? "would be removed" : "removed"}, ${formatBytes(manifest.bytes)}\n`,
        );
      }
      const total = `${formatCount(removedVersions.length, "version")}, ${formatBytes(bytes)}`;
      io.stdout.write(removedVersions.length === 0 ? "nothing to remove\n" : `${total}\n`);
    }
    return ExitCode.ok;
  },
};

/** The newest version whose file has the hash in its manifest. It is kept even if damaged versions are newer. */
async function newestIntact(
  store: OntologyStore,
  versions: readonly StoredVersion[],
): Promise<StoredVersion | undefined> {
  for (const version of versions) if (await store.isIntact(version)) return version;
  return undefined;
}
