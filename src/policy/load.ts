import type { z } from "zod";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { type BreakerPolicies, breakerPoliciesFrom } from "./breaker-policy.ts";
import { type BreakersOptions, breakersSchema } from "./breaker-schema.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { readShippedLayer, readUserLayer } from "./file-layer.ts";
import { type PolicyOverrides, readFlags } from "./flag-layer.ts";
import { type Assignment, assemble, type PolicyLayer, standsAlone } from "./layer.ts";
import { type ConfiguredLimits, limitPoliciesFrom } from "./limits.ts";
import type { KnownNames } from "./overrides.ts";
import { LAYERS } from "./precedence.ts";
import { type RatelimitsOptions, ratelimitsSchema } from "./ratelimit-schema.ts";
import { problemsOf } from "./validation.ts";

/** The sources of a policy beside the shipped files. Each one wins over those above it, field by field. */
export interface PolicySources {
  /**
   * Rate limits: the path of a YAML file, or its content as an object. Extends the shipped `ratelimits.yaml`, unless
   * it has `extends: none`. @default the file that DOCSTOKG_RLIMITS_YAML names
   */
  readonly ratelimits?: string | RatelimitsOptions | undefined;
  /**
   * Circuit breakers: the path of a YAML file, or its content as an object. Extends the shipped `breakers.yaml`, unless
   * it has `extends: none`. @default the file that DOCSTOKG_BREAKERS_YAML names
   */
  readonly breakers?: string | BreakersOptions | undefined;
  /** Environment variables, usually `process.env`. @default none */
  readonly env?: Environment | undefined;
  /** The values of command-line flags. @default none */
  readonly overrides?: PolicyOverrides | undefined;
}

/** The limits or the breakers of a loaded policy. */
export interface LoadedSection<Options, Resolved> {
  /** Every value of every layer with its source, weakest layer first. */
  readonly assignments: readonly Assignment[];
  /** The merged values, in the shape of the YAML file. */
  readonly options: Options;
  /** The same values, resolved for each host and role. */
  readonly resolved: Resolved;
}

/** A policy that was loaded and checked. */
export interface LoadedPolicy {
  readonly ratelimits: LoadedSection<RatelimitsOptions, ConfiguredLimits>;
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
 * Loads the policy: shipped files, then the user's files or objects, then environment, then flags; a later layer wins,
 * field by field. Throws one ConfigError that lists every problem of every layer.
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

/** Assembles a section and resolves it. A problem that only the merged values have gets the source of its key. */
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

async function loadSection(
  { key, schema, variable }: PolicySection,
  { env = {}, overrides = {}, ...sources }: PolicySources,
  problems: ConfigProblem[],
): Promise<readonly Assignment[]> {
  const shipped = await readShippedLayer(key);
  const user = await readUserLayer(key, variable, sources[key], env);
  const files = [...(standsAlone(user.assignments) ? [] : shipped.assignments), ...user.assignments];
  const names = knownNames(files);
  const layers: Readonly<Record<(typeof LAYERS)[number], PolicyLayer>> = {
    shipped,
    user,
    environment: readEnvironment(env, key, names),
    flags: readFlags(key, overrides, names),
  };
  for (const name of LAYERS) {
    const layer = layers[name];
    problems.push(...layer.problems);
    // Most layers are empty.
    if (layer.assignments.length > 0) problems.push(...problemsOf(schema, layer.assignments, key));
  }
  const used = LAYERS.filter(name => name !== "shipped" || !standsAlone(user.assignments));
  return used.flatMap(name => layers[name].assignments);
}

/** The hosts and groups that the files list. */
function knownNames(assignments: readonly Assignment[]): KnownNames {
  const namesUnder = (key: string) =>
    new Set(assignments.flatMap(({ path: [first, name] }) => (first === key && name !== undefined ? [name] : [])));
  return { hosts: namesUnder("hosts"), groups: namesUnder("groups") };
}
