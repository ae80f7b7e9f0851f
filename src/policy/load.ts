import { basename } from "node:path";
import type { z } from "zod";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { type BreakerPolicies, breakerPoliciesFrom } from "./breaker-policy.ts";
import { type BreakersOptions, breakersSchema } from "./breaker-schema.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { readFileLayer, readShippedLayer } from "./file-layer.ts";
import { loadIdentities } from "./identities.ts";
import { type Assignment, assemble, assignmentsOf } from "./layer.ts";
import { type LimitPolicies, limitPoliciesFrom } from "./limits.ts";
import {
  parseScalar,
  readBreakerOverride,
  readBreakerRoleOverride,
  readFields,
  readRateOverride,
} from "./overrides.ts";
import { type RatelimitsOptions, ratelimitsSchema } from "./ratelimit-schema.ts";
import { problemsOf } from "./validation.ts";
import type { PolicyLayer } from "./yaml-layer.ts";

/** The third layer, as flags say it. */
export interface PolicyOverrides {
  readonly rate?: readonly string[] | undefined;
  readonly rateBackend?: string | undefined;
  readonly rateDsn?: string | undefined;
  readonly maxInflight?: string | number | undefined;
  readonly aimd?: string | undefined;
  readonly breaker?: readonly string[] | undefined;
  readonly breakerRole?: readonly string[] | undefined;
  readonly breakerResolver?: readonly string[] | undefined;
  readonly breakerRolling?: string | undefined;
}

export interface PolicySources {
  /** A file, or the same as an object. @default what DOCSTOKG_RLIMITS_YAML names, if anything */
  readonly ratelimits?: string | RatelimitsOptions | undefined;
  /** A file, or the same as an object. @default what DOCSTOKG_BREAKERS_YAML names, if anything */
  readonly breakers?: string | BreakersOptions | undefined;
  /** @default nothing */
  readonly env?: Environment | undefined;
  readonly overrides?: PolicyOverrides | undefined;
}

/** One half of the policy: everything that was said, in the order of the layers, and what it comes to. */
export interface LoadedSection<Options, Resolved> {
  readonly assignments: readonly Assignment[];
  readonly options: Options;
  readonly resolved: Resolved;
}

export interface LoadedPolicy {
  readonly ratelimits: LoadedSection<RatelimitsOptions, LimitPolicies>;
  readonly breakers: LoadedSection<BreakersOptions, BreakerPolicies>;
}

interface PolicySection {
  readonly key: "ratelimits" | "breakers";
  readonly schema: z.ZodType;
  readonly variable: string;
}

const RATELIMITS: PolicySection = { key: "ratelimits", schema: ratelimitsSchema, variable: "DOCSTOKG_RLIMITS_YAML" };
const BREAKERS: PolicySection = { key: "breakers", schema: breakersSchema, variable: "DOCSTOKG_BREAKERS_YAML" };

/**
 * Loads the policy in its layers: shipped file, the user's file or object, environment, flags; field by field, the
 * last word counts. Throws one ConfigError with everything that is wrong in any layer.
 */
export async function loadPolicy(sources: PolicySources = {}): Promise<LoadedPolicy> {
  const problems: ConfigProblem[] = [];
  const limits = await loadSection(RATELIMITS, sources, problems);
  const breakers = await loadSection(BREAKERS, sources, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    ratelimits: resolve(limits, options => limitPoliciesFrom(options, "policy")),
    breakers: resolve(breakers, options => breakerPoliciesFrom(options, "policy")),
  };
}

/** Assembles a half and resolves it. What is wrong only with the whole is told by the place of its part. */
function resolve<Options, Resolved>(
  assignments: readonly Assignment[],
  make: (options: Options) => Resolved,
): LoadedSection<Options, Resolved> {
  const options = assemble(assignments) as Options;
  try {
    return { assignments, options, resolved: make(options) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const placed = error.problems.map(problem => {
      const assignment = assignments.findLast(({ path }) => `${problem.path}.`.startsWith(`${path.join(".")}.`));
      return { ...problem, where: assignment?.where ?? problem.where };
    });
    throw new ConfigError(placed);
  }
}

/** Which file of the policy this is, and what is wrong with it on top of the shipped one. */
export async function checkFile(
  file: string,
): Promise<{ readonly key: PolicySection["key"] | "identities"; readonly problems: readonly ConfigProblem[] }> {
  const { assignments } = await readFileLayer(file);
  const key = kindOf(file, assignments);
  try {
    if (key === "identities") await loadIdentities({ identities: file });
    else await loadPolicy({ [key]: file });
    return { key, problems: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { key, problems: error.problems };
  }
}

/** By its name, or failing that by keys that only one of the files has. */
function kindOf(file: string, assignments: readonly Assignment[]): PolicySection["key"] | "identities" {
  const name = basename(file);
  if (/breaker/i.test(name)) return BREAKERS.key;
  if (/ratelimit/i.test(name)) return RATELIMITS.key;
  if (/identit/i.test(name)) return "identities";
  if (assignments.some(({ path: [first, , key] }) => first === "hosts" && (key === "query" || key === "headers")))
    return "identities";
  const breakerKeys: ReadonlySet<string> = new Set([
    "advanced",
    "resolvers",
    "fail_max",
    "reset_timeout_s",
    "classify",
    "half_open",
  ]);
  return assignments.some(({ path }) => path.some(key => breakerKeys.has(key))) ? BREAKERS.key : RATELIMITS.key;
}

async function loadSection(
  section: PolicySection,
  sources: PolicySources,
  problems: ConfigProblem[],
): Promise<readonly Assignment[]> {
  const layers = [
    await readShippedLayer(section.key),
    await readUserLayer(section, sources),
    readEnvironment(sources.env ?? {}, section.key),
    readFlags(section, sources.overrides ?? {}),
  ] as const;
  for (const layer of layers) {
    problems.push(...layer.problems);
    // Most layers say nothing.
    if (layer.assignments.length > 0) problems.push(...problemsOf(section.schema, layer.assignments, section.key));
  }
  const [base, own, ...rest] = layers;
  const standsAlone = own.assignments.some(({ path, value }) => path.join(".") === "extends" && value === "none");
  return [...(standsAlone ? [] : base.assignments), ...own.assignments, ...rest.flatMap(layer => layer.assignments)];
}

async function readUserLayer(section: PolicySection, { env = {}, ...sources }: PolicySources): Promise<PolicyLayer> {
  const given = sources[section.key] ?? (env[section.variable] || undefined);
  if (given === undefined) return { assignments: [], problems: [] };
  if (typeof given === "string")
    return readFileLayer(given, given, sources[section.key] === undefined ? section.variable : undefined);
  return { assignments: assignmentsOf(given, `policy.${section.key}`), problems: [] };
}

function readFlags({ key }: PolicySection, flags: PolicyOverrides): PolicyLayer {
  const assignments: Assignment[] = [];
  const problems: ConfigProblem[] = [];
  const read = (
    where: string,
    values: readonly (string | undefined)[],
    parse: (value: string) => readonly Assignment[],
  ) => {
    for (const value of values) {
      if (value === undefined) continue;
      try {
        assignments.push(...parse(value));
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        problems.push({ where, path: "", message: error.message });
      }
    }
  };
  const set = (where: string, path: readonly string[], value: unknown) => {
    if (value !== undefined) assignments.push({ path, value, where });
  };
  if (key === "ratelimits") {
    const { maxInflight } = flags;
    read("--rate", flags.rate ?? [], value => readRateOverride(value, "--rate"));
    set("--rate-backend", ["backend", "kind"], flags.rateBackend);
    set("--rate-dsn", ["backend", "dsn"], flags.rateDsn);
    set(
      "--max-inflight",
      ["global", "max_inflight"],
      typeof maxInflight === "string" ? parseScalar(maxInflight) : maxInflight,
    );
    read("--aimd", [flags.aimd], value => readFields(value, ["aimd"], "--aimd"));
  } else {
    read("--breaker", flags.breaker ?? [], value => readBreakerOverride(value, "--breaker"));
    read("--breaker-role", flags.breakerRole ?? [], value => readBreakerRoleOverride(value, "--breaker-role"));
    read("--breaker-resolver", flags.breakerResolver ?? [], value =>
      readBreakerOverride(`resolver:${value}`, "--breaker-resolver"),
    );
    read("--breaker-rolling", [flags.breakerRolling], value =>
      readFields(value, ["advanced", "rolling_window"], "--breaker-rolling"),
    );
  }
  return { assignments, problems };
}
