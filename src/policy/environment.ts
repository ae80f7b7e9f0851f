import { nearest } from "../core/text/nearest.ts";
import type { ConfigProblem } from "../errors.ts";
import type { Assignment } from "./layer.ts";
import {
  parseScalar,
  readBreakerOverride,
  readBreakerRoleOverride,
  readFields,
  readList,
  readRateOverride,
} from "./overrides.ts";

type VariableReader = (value: string, name: string) => readonly Assignment[];

/** Variables of one name. */
const VARIABLES: Readonly<Record<"ratelimits" | "breakers", Readonly<Record<string, VariableReader>>>> = {
  ratelimits: {
    DOCSTOKG_RLIMITS: (value, name) => readList(value, name, readRateOverride),
    DOCSTOKG_RLIMIT_BACKEND: (value, name) => [{ path: ["backend", "kind"], value, where: name }],
    DOCSTOKG_RLIMIT_DSN: (value, name) => [{ path: ["backend", "dsn"], value, where: name }],
    DOCSTOKG_MAX_INFLIGHT: (value, name) => [
      { path: ["global", "max_inflight"], value: parseScalar(value), where: name },
    ],
    DOCSTOKG_AIMD: (value, name) => readFields(value, ["aimd"], name),
  },
  breakers: {
    DOCSTOKG_BREAKERS: (value, name) => readList(value, name, readBreakerOverride),
    DOCSTOKG_BREAKER_ADV__ROLLING: (value, name) => readFields(value, ["advanced", "rolling_window"], name),
    DOCSTOKG_BREAKER_COOLDOWN_BACKEND: (value, name) => [
      { path: ["advanced", "cooldown_store", "backend"], value, where: name },
    ],
    DOCSTOKG_BREAKER_COOLDOWN_DSN: (value, name) => [
      { path: ["advanced", "cooldown_store", "dsn"], value, where: name },
    ],
  },
};

/** Variables whose names carry a host, a role or a resolver. */
const PREFIXES: Readonly<Record<"ratelimits" | "breakers", Readonly<Record<string, VariableReader>>>> = {
  ratelimits: {
    DOCSTOKG_RLIMIT__: (value, name) =>
      readRateOverride(`${nameAfterPrefix(name).replace(/__(?!.*__)/, ":")}=${value}`, name),
  },
  breakers: {
    DOCSTOKG_BREAKER__: (value, name) => readBreakerOverride(`${nameAfterPrefix(name)}=${value}`, name),
    DOCSTOKG_BREAKER_ROLE__: (value, name) =>
      readBreakerRoleOverride(`${nameAfterPrefix(name).replace(/__(?!.*__)/, ":")}=${value}`, name),
    DOCSTOKG_BREAKER_RESOLVER__: (value, name) =>
      readBreakerOverride(`resolver:${nameAfterPrefix(name)}=${value}`, name),
  },
};

/** Variables that others read. */
const OTHER_VARIABLES = [
  "DOCSTOKG_RLIMITS_YAML",
  "DOCSTOKG_BREAKERS_YAML",
  "DOCSTOKG_IDENTITIES_YAML",
  "DOCSTOKG_MAILTO",
  "DOCSTOKG_CACHE",
];

export type Environment = Readonly<Record<string, string | undefined>>;

export interface EnvironmentLayer {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly ConfigProblem[];
}

/** What the environment says of the limits, or of the breakers. A variable set to nothing says nothing. */
export function readEnvironment(environment: Environment, section: "ratelimits" | "breakers"): EnvironmentLayer {
  const assignments: Assignment[] = [];
  const problems: ConfigProblem[] = [];
  for (const [name, value] of Object.entries(environment)) {
    const prefix = Object.keys(PREFIXES[section]).find(start => name.startsWith(start));
    const own = Object.hasOwn(VARIABLES[section], name) ? VARIABLES[section][name] : undefined;
    const read = own ?? (prefix === undefined ? undefined : PREFIXES[section][prefix]);
    if (read === undefined || value === undefined || value === "") continue;
    try {
      assignments.push(...read(value, name));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push({ where: name, path: "", message: error.message });
    }
  }
  return { assignments, problems };
}

/** Variables that look like ours and are not: a limit that was mistyped is a limit that does not hold. */
export function unknownVariables(environment: Environment): readonly string[] {
  const names = [...Object.keys(VARIABLES.ratelimits), ...Object.keys(VARIABLES.breakers), ...OTHER_VARIABLES];
  const prefixes = [...Object.keys(PREFIXES.ratelimits), ...Object.keys(PREFIXES.breakers)];
  return Object.keys(environment)
    .filter(name => name.startsWith("DOCSTOKG_") && !names.includes(name))
    .filter(name => !prefixes.some(prefix => name.startsWith(prefix)))
    .map(name => {
      const meant = nearest(name, names);
      return meant === undefined
        ? `${name} is no variable of ours`
        : `${name} is no variable of ours; did you mean ${meant}?`;
    });
}

/** What stands behind the first double underscore: a host, `host__role`, or the name of a resolver. */
function nameAfterPrefix(variable: string): string {
  return variable.slice(variable.indexOf("__") + 2);
}
