import { inspectFile } from "../../ontology/file-inspection.ts";
import { type Lockfile, readLock } from "../../ontology/lockfile.ts";
import type { OntologyStore, StoredVersion } from "../../ontology/ontology-store.ts";
import { openOntologyStore } from "../../ontology/open-ontology-store.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { printJson } from "../output/json.ts";
import { printable } from "../output/printable.ts";
import type { CommandModule } from "../program.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf } from "./settings-flags.ts";

interface VersionCheck {
  readonly id: string;
  readonly version: string;
  readonly problems: readonly string[];
}

/**
 * `ontofetch validate`: compares stored files with their manifests and the lockfile, and parses them as far as --check
 * says.
 */
export const validate = {
  configure: command => {
    command.argument("[id...]", ARGUMENTS.ontologies).option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile", "check"]);
  },
  run: (ids, flags, io) =>
    interruptible(io, async signal => {
      const settings = await ontofetchSettingsOf(flags, io);
      using store = await openOntologyStore(settings.store, systemTime);
      const lock = await readLock(settings.lockfile);
      const allIds = new Set([...(await store.ids()), ...lock.keys()]);
      const wanted = ids.length === 0 ? [...allIds].sort() : ids;
      const checks: VersionCheck[] = [];
      const report = (check: VersionCheck) => {
        checks.push(check);
        if (flags["json"]) return;
        const { id, version, problems } = check;
        if (problems.length === 0) io.stdout.write(`${printable(`${id} ${version}`)}: valid\n`);
        for (const problem of problems)
          io.stderr.write(`${printable(`${[id, version].join(" ").trimEnd()}: ${problem}`)}\n`);
      };
      for (const id of wanted) {
        // Only a known id may become part of a path.
        const versions = allIds.has(id) ? await store.versions(id) : [];
        for (const version of versions) {
          const problems = await problemsOf(store, version, settings.check, signal);
          report({ id, version: version.manifest.version, problems });
        }
        for (const folder of allIds.has(id) ? await store.foldersWithoutManifest(id) : []) {
          report({ id, version: folder, problems: ["manifest.json is missing or invalid"] });
        }
        const absent = missingVersion(id, versions, lock);
        if (absent !== undefined) report(absent);
      }
      if (flags["json"]) printJson(io, { checks });
      if (wanted.length === 0) {
        const { store: folder, lockfile } = settings;
        io.stderr.write(
          `No versions in the store ${folder} and no entries in the lockfile ${lockfile}; run ontofetch pull\n`,
        );
      }
      return checks.some(({ problems }) => problems.length > 0) ? ExitCode.partial : ExitCode.ok;
    }),
} satisfies CommandModule;

async function problemsOf(
  store: OntologyStore,
  version: StoredVersion,
  depth: Parameters<typeof inspectFile>[1],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { manifest } = version;
  const sha256 = await store.hashOf(version, signal);
  if (sha256 === undefined) return ["file missing"];
  if (sha256 !== manifest.sha256) return [`content changed: sha256 is ${sha256}, the manifest has ${manifest.sha256}`];
  const { format, url } = manifest;
  const found = await inspectFile(await store.localFile(version, signal), depth, { claim: format, signal, base: url });
  if (found.kind !== "valid") return [found.problem];
  return found.format === format ? [] : [`format is ${found.format}, the manifest has ${format}`];
}

/** The problem of a locked version that is not in the store, or of an id that is neither in the store nor locked. */
function missingVersion(id: string, versions: readonly StoredVersion[], lock: Lockfile): VersionCheck | undefined {
  const locked = lock.get(id);
  if (locked === undefined) {
    return versions.length > 0
      ? undefined
      : { id, version: "", problems: ["not in the store and not in the lockfile"] };
  }
  const isStored = versions.some(({ manifest }) => manifest.sha256 === locked.sha256);
  return isStored ? undefined : { id, version: locked.version, problems: ["locked, but not in the store"] };
}
