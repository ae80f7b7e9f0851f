import { nearest } from "../core/text/nearest.ts";
import type { Assignment, PolicyLayer, SectionName } from "./layer.ts";
import {
  type KnownNames,
  type OverrideReader,
  parseScalar,
  readBreakerOverride,
  readBreakerRoleOverride,
  readFields,
  readRateOverride,
  readResolverOverride,
  splitList,
} from "./overrides.ts";
import { ProblemList } from "./problem-list.ts";
import { isRole } from "./roles.ts";

type VariableReaders = Readonly<Record<SectionName, Readonly<Record<string, OverrideReader>>>>;

/** Variables with a fixed name. */
const VARIABLES: VariableReaders = {
  ratelimits: {
    DOCSTOKG_RLIMITS: readRateOverride,
    DOCSTOKG_RLIMIT_BACKEND: textAt("backend", "kind"),
    DOCSTOKG_RLIMIT_DSN: textAt("backend", "dsn"),
    DOCSTOKG_WHEN_STORE_AWAY: textAt("backend", "when_store_away"),
    DOCSTOKG_FLEET_SIZE: (value, name) => [{ path: ["backend", "fleet_size"], value: parseScalar(value), where: name }],
    DOCSTOKG_MAX_INFLIGHT: (value, name) => [
      { path: ["global", "max_inflight"], value: parseScalar(value), where: name },
    ],
    DOCSTOKG_AIMD: (value, name) => readFields(value, ["aimd"], name),
  },
  breakers: {
    DOCSTOKG_BREAKERS: readBreakerOverride,
    DOCSTOKG_BREAKER_ADV__ROLLING: (value, name) => readFields(value, ["advanced", "rolling_window"], name),
    DOCSTOKG_BREAKER_COOLDOWN_BACKEND: textAt("advanced", "cooldown_store", "backend"),
    DOCSTOKG_BREAKER_COOLDOWN_DSN: textAt("advanced", "cooldown_store", "dsn"),
  },
};

/** Variables with several entries, joined by `;`. */
const LISTS: ReadonlySet<string> = new Set(["DOCSTOKG_RLIMITS", "DOCSTOKG_BREAKERS"]);

/** Variables whose names contain a host, a role or a resolver. */
const PREFIXES: VariableReaders = {
  ratelimits: {
    DOCSTOKG_RLIMIT__: (value, name, names) => readRateOverride(`${hostAndRole(name)}=${value}`, name, names),
  },
  breakers: {
    DOCSTOKG_BREAKER__: (value, name, names) => {
      const [, role] = splitHostAndRole(name);
      if (role !== undefined && isRole(role.toLowerCase()))
        throw new RangeError(
          `the name ends in the role ${role}: for one role, the variable is DOCSTOKG_BREAKER_ROLE__${nameAfterPrefix(name)}`,
        );
      return readBreakerOverride(`${nameAfterPrefix(name)}=${value}`, name, names);
    },
    DOCSTOKG_BREAKER_ROLE__: (value, name, names) =>
      readBreakerRoleOverride(`${hostAndRole(name)}=${value}`, name, names),
    DOCSTOKG_BREAKER_RESOLVER__: (value, name, names) =>
      readResolverOverride(`${nameAfterPrefix(name)}=${value}`, name, names),
  },
};

/** Variables that are read elsewhere. */
const OTHER_VARIABLES = [
  "DOCSTOKG_RLIMITS_YAML",
  "DOCSTOKG_BREAKERS_YAML",
  "DOCSTOKG_IDENTITIES_YAML",
  "DOCSTOKG_MAILTO",
  "DOCSTOKG_CACHE",
  "DOCSTOKG_MANIFEST",
];

/** Every variable with a fixed name. */
export const VARIABLE_NAMES: readonly string[] = [
  ...Object.keys(VARIABLES.ratelimits),
  ...Object.keys(VARIABLES.breakers),
  ...OTHER_VARIABLES,
];
/** The beginnings of the variables whose names contain a host, a role or a resolver. */
export const VARIABLE_PREFIXES: readonly string[] = [
  ...Object.keys(PREFIXES.ratelimits),
  ...Object.keys(PREFIXES.breakers),
];

/** Environment variables by name, such as `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The values that the environment sets for the limits or for the breakers. An empty variable sets nothing. A variable
 * for one host or role wins over the lists.
 */
export function readEnvironment(environment: Environment, section: SectionName, names: KnownNames): PolicyLayer {
  const assignments: Assignment[] = [];
  const list = new ProblemList();
  const isSingle = ([name]: readonly [string, unknown]) => Number(!LISTS.has(name));
  for (const [name, value] of Object.entries(environment).toSorted((a, b) => isSingle(a) - isSingle(b))) {
    const prefix = Object.keys(PREFIXES[section]).find(start => name.startsWith(start));
    const own = Object.hasOwn(VARIABLES[section], name) ? VARIABLES[section][name] : undefined;
    const read = own ?? (prefix === undefined ? undefined : PREFIXES[section][prefix]);
    if (read === undefined || value === undefined || value === "") continue;
    for (const entry of LISTS.has(name) ? splitList(value) : [value]) {
      try {
        assignments.push(...read(entry, name, names));
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        list.add(() => ({ where: name, path: "", message: error.message }));
      }
    }
  }
  return { assignments, problems: list.problems };
}

/** A message for each variable that begins with DOCSTOKG_ and is not known: a misspelled variable has no effect. */
export function unknownVariables(environment: Environment): readonly string[] {
  return Object.keys(environment)
    .filter(name => name.startsWith("DOCSTOKG_") && !VARIABLE_NAMES.includes(name))
    .filter(name => !VARIABLE_PREFIXES.some(prefix => name.startsWith(prefix)))
    .map(name => {
      const suggested = nearest(name, VARIABLE_NAMES);
      return `unknown environment variable ${name}${suggested === undefined ? "" : `; did you mean ${suggested}?`}`;
    });
}

function textAt(...path: readonly string[]): OverrideReader {
  return (value, where) => [{ path, value, where }];
}

/** `host__role` at the end of a variable's name, as `host:role`. */
function hostAndRole(variable: string): string {
  return splitHostAndRole(variable).join(":");
}

function splitHostAndRole(variable: string): readonly [host: string, role?: string] {
  const name = nameAfterPrefix(variable);
  const at = name.lastIndexOf("__");
  return at < 0 ? [name] : [name.slice(0, at), name.slice(at + 2)];
}

/** The part after the first double underscore: a host, `host__role`, or the name of a resolver. */
function nameAfterPrefix(variable: string): string {
  return variable.slice(variable.indexOf("__") + 2);
}
