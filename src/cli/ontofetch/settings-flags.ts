import type { Command } from "commander";
import { ConfigError } from "../../errors.ts";
import { nameHint } from "../../ontology/name-hint.ts";
import {
  loadOntofetchSettings,
  type OntofetchFlags,
  type OntofetchSettings,
} from "../../ontology/ontofetch-settings.ts";
import type { Source } from "../../ontology/resolver.ts";
import type { Flags, Io } from "../program.ts";

/** Flags that override sources.yaml. Each command adds those that have an effect on it. */
export type SettingsFlag = keyof typeof SETTINGS_FLAGS;

const SETTINGS_FLAGS = {
  sources: ["--sources <file>", "sources file (default: sources.yaml)"],
  store: ["--store <folder>", "folder of the ontology store"],
  lockfile: ["--lockfile <file>", "lockfile with versions and hashes"],
  check: [
    "--check <depth>",
    "how files are validated: full (beginning, end and a parser), end (beginning and end) or none (beginning)",
  ],
  rate: ["--rate <rate>", "default rate limit per service, e.g. 8/second"],
  ratePerService: ["--rate-per-service <rates>", "rate limits by service, e.g. ols:4/second;bioportal:2/second"],
  sharedDir: ["--shared-dir <folder>", "folder through which processes share rate limits"],
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
 * The sources with these ids, in the order of sources.yaml; all if `ids` is empty. Throws a ConfigError for an unknown
 * id.
 */
export function chosenSources({ sources, file }: OntofetchSettings, ids: readonly string[]): readonly Source[] {
  if (sources.length === 0) throw new ConfigError([{ where: file, path: "sources", message: "no sources defined" }]);
  const validIds = sources.map(({ id }) => id);
  const problems = ids
    .filter(id => !validIds.includes(id))
    .map(id => ({
      where: "<id>",
      path: "",
      message: `unknown source ${JSON.stringify(id)}; ${nameHint(id, validIds)}`,
    }));
  if (problems.length > 0) throw new ConfigError(problems);
  return ids.length === 0 ? sources : sources.filter(({ id }) => ids.includes(id));
}
