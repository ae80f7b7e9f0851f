import type { Command } from "commander";
import { ConfigError } from "../../errors.ts";
import { readLock } from "../../ontology/lockfile.ts";
import { nameHint } from "../../ontology/name-hint.ts";
import {
  loadOntofetchSettings,
  type OntofetchFlags,
  type OntofetchSettings,
} from "../../ontology/ontofetch-settings.ts";
import type { StoredVersion } from "../../ontology/ontology-store.ts";
import { openOntologyStore } from "../../ontology/open-ontology-store.ts";
import type { Source } from "../../ontology/resolver.ts";
import { idProblem } from "../../ontology/sources-schema.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Flags, Io } from "../program.ts";

/** Flags that override sources.yaml. Each command adds those that have an effect on it. */
export type SettingsFlag = keyof typeof SETTINGS_FLAGS;

const SETTINGS_FLAGS = {
  sources: ["--sources <file>", "sources file (default: ONTOFETCH_SOURCES, else sources.yaml)"],
  store: [
    "--store <folder>",
    "folder of the ontology store, or s3://bucket/prefix (default: that of sources.yaml, else ontologies)",
  ],
  lockfile: [
    "--lockfile <file>",
    "lockfile with versions and hashes (default: that of sources.yaml, else ontologies.lock.json)",
  ],
  check: [
    "--check <depth>",
    "what is validated: full (the whole file), end (its beginning and end) or none (its beginning) (default: that of sources.yaml, else full)",
  ],
  rate: [
    "--rate <rate>",
    "default rate limit per service, e.g. 8/second; none for no limit (default: that of sources.yaml, else 8/second)",
  ],
  ratePerService: [
    "--rate-per-service <rates>",
    'rate limits by service, e.g. "ols:4/second;bioportal:2/second" (default: those of sources.yaml)',
  ],
  sharedDir: [
    "--shared-dir <folder>",
    "folder through which processes share rate limits (default: that of sources.yaml, else .ontofetch in the store)",
  ],
} as const;

/** What the arguments of the commands mean. */
export const ARGUMENTS = {
  sources: "ids in sources.yaml, or <id>@<version> for one version (default: all)",
  ontologies: "ids of ontologies (default: all)",
  source: "an id in sources.yaml",
  version: "<id>@<version>; an id alone means the locked version, or else the newest",
} as const;

/** The flags that set the rate limits of services. */
export const RATE_FLAGS = ["rate", "ratePerService", "sharedDir"] as const satisfies readonly SettingsFlag[];

export function addSettingsFlags(command: Command, flags: readonly SettingsFlag[]): void {
  for (const flag of flags) {
    const [name, description] = SETTINGS_FLAGS[flag];
    command.option(name, description);
  }
}

export function ontofetchSettingsOf(flags: Flags, { env }: Io): Promise<OntofetchSettings> {
  return loadOntofetchSettings(flags as OntofetchFlags, env, process.cwd());
}

/**
 * The named sources, in the order of sources.yaml; all of them without a name. `hp@2025-01-16` pins a version. Throws a
 * ConfigError for an unknown id, and for two versions of one source.
 */
export function chosenSources({ sources, file }: OntofetchSettings, names: readonly string[]): readonly Source[] {
  if (sources.length === 0) throw new ConfigError([{ where: file, path: "sources", message: "no sources defined" }]);
  const validIds = sources.map(({ id }) => id);
  const wanted = new Map<string, string | undefined>();
  const messages = new Set<string>();
  for (const [id, version] of names.map(idAndVersion)) {
    const other = wanted.get(id);
    if (!validIds.includes(id)) messages.add(`unknown source ${JSON.stringify(id)}; ${nameHint(id, validIds)}`);
    else if (version !== undefined && other !== undefined && version !== other) {
      const both = `${other} and ${version}`;
      messages.add(`${id} is named twice with different versions: ${both}; name one version in each command`);
    }
    wanted.set(id, version ?? other);
  }
  if (messages.size > 0) throw new ConfigError([...messages].map(message => ({ where: "<id>", path: "", message })));
  if (names.length === 0) return sources;
  return sources
    .filter(({ id }) => wanted.has(id))
    .map(source => ({ ...source, version: wanted.get(source.id) ?? source.version }));
}

/** The parts of `id@version`. */
function idAndVersion(name: string): readonly [id: string, version: string | undefined] {
  const at = name.indexOf("@");
  if (at < 0) return [name, undefined];
  const version = name.slice(at + 1);
  if (version !== "") return [name.slice(0, at), version];
  throw new ConfigError([{ where: "<id>", path: "", message: `no version after "@" in ${JSON.stringify(name)}` }]);
}

/**
 * The stored version that a name means: the named version, else the locked one, else the newest. Its path is on this
 * machine. Throws a ConfigError that lists the stored versions.
 */
export async function storedVersion(
  { store: root, lockfile }: OntofetchSettings,
  name: string,
  signal?: AbortSignal,
): Promise<StoredVersion> {
  const [id, wanted] = idAndVersion(name);
  // The id becomes a part of a path.
  const problem = idProblem(id);
  if (problem !== undefined) throw new ConfigError([{ where: "<id>", path: "", message: problem }]);
  using store = await openOntologyStore(root, systemTime);
  const versions = await store.versions(id);
  const locked = (await readLock(lockfile)).get(id)?.sha256;
  const found =
    wanted === undefined
      ? (versions.find(({ manifest }) => manifest.sha256 === locked) ?? versions[0])
      : versions.find(({ manifest, folder }) => [manifest.version, folder].includes(wanted));
  if (found !== undefined) return { ...found, path: await store.localFile(found, signal) };
  const list = versions.map(({ manifest }) => manifest.version).join(", ") || "none";
  throw new ConfigError([
    { where: "<id>", path: "", message: `${name} is not in the store; stored versions: ${list}` },
  ]);
}
