import type { ConfigProblem } from "../errors.ts";
import type { Environment } from "../policy/environment.ts";
import type { Assignment } from "../policy/layer.ts";
import { nameHint } from "./name-hint.ts";

type VariableParser = (text: string) => unknown;

const asText: VariableParser = text => text;
const asNumber: VariableParser = text => (/^\d+$/.test(text) ? Number(text) : text);
const asBoolean: VariableParser = text => (/^(?:true|false)$/i.test(text) ? text.toLowerCase() === "true" : text);
/** The setting of each variable, and how its text is parsed. */
const VARIABLES: Readonly<Record<string, { readonly path: readonly string[]; readonly read: VariableParser }>> = {
  ONTOFETCH_STORE: { path: ["store"], read: asText },
  ONTOFETCH_LOCKFILE: { path: ["lockfile"], read: asText },
  ONTOFETCH_CHECK: { path: ["check"], read: asText },
  ONTOFETCH_MAX_FILE_MB: { path: ["max_file_mb"], read: asNumber },
  ONTOFETCH_PARALLEL: { path: ["parallel"], read: asNumber },
  ONTOFETCH_ALLOW_PRIVATE: { path: ["allow_private"], read: asBoolean },
  ONTOFETCH_RATELIMIT_DEFAULT: { path: ["ratelimit", "default"], read: asText },
  ONTOFETCH_RATELIMIT_PER_SERVICE: { path: ["ratelimit", "per_service"], read: asText },
  ONTOFETCH_RATELIMIT_SHARED_DIR: { path: ["ratelimit", "shared_dir"], read: asText },
};

/** The path of `sources.yaml`. */
export const SOURCES_VARIABLE = "ONTOFETCH_SOURCES";
export const ONTOFETCH_VARIABLES: readonly string[] = [SOURCES_VARIABLE, ...Object.keys(VARIABLES)];

/**
 * An empty variable is ignored. An unknown name is a problem, so that a typing error does not leave the default in
 * force.
 */
export function readOntofetchEnvironment(env: Environment): {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly ConfigProblem[];
} {
  const assignments: Assignment[] = [];
  const problems: ConfigProblem[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("ONTOFETCH_") || name === SOURCES_VARIABLE || value === undefined || value === "") continue;
    const variable = Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
    if (variable === undefined) {
      const message = `unknown environment variable; ${nameHint(name, ONTOFETCH_VARIABLES)}`;
      problems.push({ where: name, path: "", message });
    } else assignments.push({ path: variable.path, value: variable.read(value), where: name });
  }
  return { assignments, problems };
}
