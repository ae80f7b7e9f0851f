/** Which environment variable and which flag sets a key of the policy: found by reading an example of each. */
import { readEnvironment } from "../../src/policy/environment.ts";
import { type PolicyOverrides, readFlags } from "../../src/policy/flag-layer.ts";

type Section = "ratelimits" | "breakers";

interface Override {
  readonly variable: string;
  readonly flag: string;
  /** The name of the variable with an example of host and role, and the text of its value for a field. */
  readonly env: (field: string) => readonly [name: string, value: string];
  readonly flags: (field: string) => PolicyOverrides;
}

const HOST = "api.example.org";
const names = { hosts: new Set([HOST]), services: new Set(["arxiv"]) };
const limit = (target: string, role: string): Override => ({
  variable: "DOCSTOKG_RLIMIT__<host>__<role>",
  flag: "--rate <host>:<role>=…",
  env: field => [`DOCSTOKG_RLIMIT__${target}__${role}`, `${field}:1`],
  flags: field => ({ rate: [`${target}:${role}=${field}:1`] }),
});
const circuit = (target: string): Override => ({
  variable: "DOCSTOKG_BREAKER__<host>",
  flag: "--breaker <host>=…",
  env: field => [`DOCSTOKG_BREAKER__${target}`, `${field}:1`],
  flags: field => ({ breaker: [`${target}=${field}:1`] }),
});
const single = (variable: string, flag: string, option: keyof PolicyOverrides): Override => ({
  variable,
  flag,
  env: () => [variable, "1"],
  flags: () => ({ [option]: "1" }),
});

const OVERRIDES: Readonly<Record<Section, readonly Override[]>> = {
  ratelimits: [
    ...[HOST, "service:arxiv", "defaults"].flatMap(target => ["metadata", "total"].map(role => limit(target, role))),
    {
      variable: "DOCSTOKG_AIMD",
      flag: "--aimd",
      env: field => ["DOCSTOKG_AIMD", `${field}:1`],
      flags: field => ({ aimd: `${field}:1` }),
    },
    single("DOCSTOKG_RLIMIT_BACKEND", "--rate-backend", "rateBackend"),
    single("DOCSTOKG_RLIMIT_DSN", "--rate-dsn", "rateDsn"),
    single("DOCSTOKG_WHEN_STORE_AWAY", "--when-store-away", "whenStoreAway"),
    single("DOCSTOKG_FLEET_SIZE", "--fleet-size", "fleetSize"),
    single("DOCSTOKG_MAX_INFLIGHT", "--max-inflight", "maxInflight"),
  ],
  breakers: [
    ...[HOST, "service:arxiv", "defaults"].map(circuit),
    {
      variable: "DOCSTOKG_BREAKER_ROLE__<host>__<role>",
      flag: "--breaker-role <host>:<role>=…",
      env: field => [`DOCSTOKG_BREAKER_ROLE__${HOST}__metadata`, `${field}:1`],
      flags: field => ({ breakerRole: [`${HOST}:metadata=${field}:1`] }),
    },
    {
      variable: "DOCSTOKG_BREAKER_RESOLVER__<resolver>",
      flag: "--breaker-resolver <resolver>=…",
      env: field => ["DOCSTOKG_BREAKER_RESOLVER__landing_page", `${field}:1`],
      flags: field => ({ breakerResolver: [`landing_page=${field}:1`] }),
    },
    {
      variable: "DOCSTOKG_BREAKER_ADV__ROLLING",
      flag: "--breaker-rolling",
      env: field => ["DOCSTOKG_BREAKER_ADV__ROLLING", `${field}:1`],
      flags: field => ({ breakerRolling: `${field}:1` }),
    },
    {
      variable: "DOCSTOKG_BREAKER_COOLDOWN_BACKEND",
      flag: "",
      env: () => ["DOCSTOKG_BREAKER_COOLDOWN_BACKEND", "1"],
      flags: () => ({}),
    },
    {
      variable: "DOCSTOKG_BREAKER_COOLDOWN_DSN",
      flag: "",
      env: () => ["DOCSTOKG_BREAKER_COOLDOWN_DSN", "1"],
      flags: () => ({}),
    },
  ],
};

/**
 * The variables that OVERRIDES describes, and what each sets. If the program knows a variable without a description, the
 * generation of the configuration page fails (`checkVariables`).
 */
export const DESCRIBED_VARIABLES: ReadonlyMap<string, string> = new Map(
  (Object.entries(OVERRIDES) as [Section, readonly Override[]][]).flatMap(([section, list]) =>
    list.map(({ variable, flag, env }) => {
      const [name, value] = env("fail_max");
      const path = readEnvironment({ [name]: value }, section, names).assignments[0]?.path.join(".");
      return [variable, flag === "" ? `\`${path}\` of \`${section}.yaml\`` : `the value of \`${flag}\``] as const;
    }),
  ),
);

/** The variables and flags that set a key at one of these paths; `paths` has placeholders such as `<host>`. */
export function overridesOf(section: Section, paths: readonly string[], key: string) {
  const wanted = paths.map(path =>
    [path, key]
      .filter(part => part !== "")
      .join(".")
      .replace("<host>", HOST)
      .replace("<service>", "arxiv")
      .replace("<resolver>", "landing_page")
      .replace("<role>", "metadata"),
  );
  const variables = new Set<string>();
  const flags = new Set<string>();
  for (const override of OVERRIDES[section]) {
    const [name, value] = override.env(key);
    const byEnv = readEnvironment({ [name]: value }, section, names);
    if (byEnv.assignments.some(({ path }) => wanted.includes(path.join(".")))) variables.add(override.variable);
    const byFlag = readFlags(section, override.flags(key), names);
    if (byFlag.assignments.some(({ path }) => wanted.includes(path.join(".")))) flags.add(override.flag);
  }
  return { variables: [...variables], flags: [...flags] };
}
