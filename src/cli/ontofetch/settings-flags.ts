import type { Command } from "commander";
import { nearest } from "../../core/text/nearest.ts";
import { ConfigError } from "../../errors.ts";
import {
  loadOntofetchSettings,
  type OntofetchFlags,
  type OntofetchSettings,
} from "../../ontology/ontofetch-settings.ts";
import type { Source } from "../../ontology/resolver.ts";
import type { Io } from "../program.ts";

/** The flags that override `sources.yaml`, the same for every command that reads it. */
export function addOntofetchFlags(command: Command): void {
  command
    .option("--sources <file>", "what is wanted; sources.yaml")
    .option("--store <folder>", "where files are kept")
    .option("--lockfile <file>", "where versions and hashes are locked")
    .option("--check <depth>", "how closely files are looked at: full, end or none")
    .option("--rate <rate>", "the limit of services, such as 8/second")
    .option("--rate-per-service <rates>", "limits by service, such as ols:4/second;bioportal:2/second")
    .option("--shared-dir <folder>", "where limits are shared with other processes");
}

export function ontofetchSettingsOf(
  options: Readonly<Record<string, unknown>>,
  { env }: Io,
): Promise<OntofetchSettings> {
  return loadOntofetchSettings(options as OntofetchFlags, env, process.cwd());
}

/** Those that were named, in the order of `sources.yaml`; all when none were. Throws a ConfigError for a stranger. */
export function chosenSources({ sources, file }: OntofetchSettings, ids: readonly string[]): readonly Source[] {
  if (sources.length === 0) {
    throw new ConfigError([{ where: file, path: "sources", message: "there is no source in it yet" }]);
  }
  const known = sources.map(({ id }) => id);
  const problems = ids
    .filter(id => !known.includes(id))
    .map(id => {
      const meant = nearest(id, known);
      const hint = meant === undefined ? `there are ${known.join(", ")}` : `did you mean ${meant}?`;
      return { where: "<id>", path: "", message: `${JSON.stringify(id)} is no source; ${hint}` };
    });
  if (problems.length > 0) throw new ConfigError(problems);
  return ids.length === 0 ? sources : sources.filter(({ id }) => ids.includes(id));
}

export function printJson({ stdout }: Io, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** `34.1 MB`, as people compare sizes. */
export function formatSize(bytes: number | undefined): string {
  if (bytes === undefined) return "?";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
