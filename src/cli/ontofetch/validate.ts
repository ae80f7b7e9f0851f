import { hashFile } from "../../files/file-hash.ts";
import { inspectFile } from "../../ontology/file-inspection.ts";
import { type Lockfile, readLock } from "../../ontology/lockfile.ts";
import { OntologyStore, type StoredVersion } from "../../ontology/ontology-store.ts";
import { ExitCode } from "../exit-code.ts";
import type { CliCommand } from "../program.ts";
import { interruptible } from "./interrupt.ts";
import { addOntofetchFlags, ontofetchSettingsOf, printJson } from "./settings-flags.ts";

interface VersionCheck {
  readonly id: string;
  readonly version: string;
  readonly problems: readonly string[];
}

/** `ontofetch validate`: whether what lies in the store is what its manifests and the lockfile say. */
export const validate: CliCommand = {
  name: "validate",
  summary: "look at stored files again: hashes, ends, and with a parser",
  configure: command => {
    command.argument("[id...]").option("--json", "print JSON");
    addOntofetchFlags(command);
  },
  run: (ids, options, io) =>
    interruptible(async signal => {
      const settings = await ontofetchSettingsOf(options, io);
      const store = new OntologyStore(settings.store);
      const lock = await readLock(settings.lockfile);
      const known = new Set([...(await store.ids()), ...lock.keys()]);
      const wanted = ids.length === 0 ? [...known].sort() : ids;
      const verdicts: VersionCheck[] = [];
      const report = (verdict: VersionCheck) => {
        verdicts.push(verdict);
        if (options["json"]) return;
        const { id, version, problems } = verdict;
        if (problems.length === 0) io.stdout.write(`${id} ${version}: sound\n`);
        for (const problem of problems) io.stderr.write(`${[id, version].join(" ").trimEnd()}: ${problem}\n`);
      };
      for (const id of wanted) {
        const versions = await store.versions(id);
        for (const version of versions) {
          const problems = await problemsOf(version, settings.check, signal);
          report({ id, version: version.manifest.version, problems });
        }
        const absent = missingVersion(id, versions, lock);
        if (absent !== undefined) report(absent);
      }
      if (options["json"]) printJson(io, { verdicts });
      if (wanted.length === 0) io.stderr.write(`Nothing is in ${settings.store} yet, and nothing is locked\n`);
      return verdicts.some(({ problems }) => problems.length > 0) ? ExitCode.partial : ExitCode.ok;
    }),
};

async function problemsOf(
  { path, manifest }: StoredVersion,
  check: Parameters<typeof inspectFile>[1],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const sha256 = await hashFile(path, signal);
  if (sha256 === undefined) return ["its file is gone"];
  if (sha256 !== manifest.sha256)
    return [`its bytes have changed: sha256 is ${sha256}, and the manifest says ${manifest.sha256}`];
  const found = await inspectFile(path, check, signal);
  if (found.kind !== "valid") return [found.problem];
  return found.format === manifest.format ? [] : [`it is ${found.format}, and the manifest says ${manifest.format}`];
}

/** What the lockfile names must be there. */
function missingVersion(id: string, versions: readonly StoredVersion[], lock: Lockfile): VersionCheck | undefined {
  const locked = lock.get(id);
  if (locked === undefined) {
    return versions.length > 0 ? undefined : { id, version: "", problems: ["neither stored nor locked"] };
  }
  const isThere = versions.some(({ manifest }) => manifest.sha256 === locked.sha256);
  return isThere ? undefined : { id, version: locked.version, problems: ["it is locked, and not in the store"] };
}
