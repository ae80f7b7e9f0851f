import { nearest } from "../core/text/nearest.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { type BreakerPolicies, breakerPoliciesFrom } from "./breaker-policy.ts";
import { type BreakersOptions, breakersSchema } from "./breaker-schema.ts";
import { checkSources } from "./check-sources.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import { readUserLayer } from "./file-layer.ts";
import { type PolicyOverrides, readFlags } from "./flag-layer.ts";
import type { Identities } from "./identity.ts";
import type { IdentitiesOptions } from "./identity-options.ts";
import { type Assignment, assemble, type PolicyLayer, type SectionName, standsAlone } from "./layer.ts";
import type { ConfiguredLimits } from "./limit-policies.ts";
import { limitPoliciesFrom } from "./limits.ts";
import { loadIdentities } from "./load-identities.ts";
import { mergeLayers } from "./merge-layers.ts";
import type { KnownNames } from "./overrides.ts";
import { LAYERS } from "./precedence.ts";
import { ProblemList } from "./problem-list.ts";
import { type RatelimitsOptions, ratelimitsSchema } from "./ratelimit-schema.ts";
import type { AnySchema } from "./schema.ts";
import { shippedValues } from "./shipped-policy.ts";
import { SourceIndex } from "./source-index.ts";
import { problemsOf } from "./validation.ts";

/**
 * The sources of a policy beside the shipped files. Environment variables win over files and objects, and command-line
 * flags win over environment variables, field by field.
 */
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
  /**
   * How requests are identified, which decides the tiers of the limits: the path of a YAML file, or its content as an
   * object. Extends the shipped `identities.yaml`. @default the file that DOCSTOKG_IDENTITIES_YAML names
   */
  readonly identities?: string | IdentitiesOptions | undefined;
  /** The email address of the program's operator. @default DOCSTOKG_MAILTO */
  readonly mailto?: string | undefined;
  /** Environment variables, usually `process.env`. @default none */
  readonly env?: Environment | undefined;
  /** The values of command-line flags. @default none */
  readonly overrides?: PolicyOverrides | undefined;
}

/** The limits or the breakers of a loaded policy. */
export interface LoadedSection<Options, Resolved> {
  /** Every value of every layer with its source, weakest layer first. */
  readonly assignments: readonly Assignment[];
  /** The same, by path. Made on first use. */
  readonly index: SourceIndex;
  /** The merged values, in the shape of the YAML file. */
  readonly options: Options;
  /** The same values, resolved for each host and role. */
  readonly resolved: Resolved;
}

/** A policy that was loaded and checked. */
export interface LoadedPolicy {
  readonly ratelimits: LoadedSection<RatelimitsOptions, ConfiguredLimits>;
  readonly breakers: LoadedSection<BreakersOptions, BreakerPolicies>;
  readonly identities: Identities;
  /** The shipped limits alone, to compare with; undefined if the user's file stands alone. Made on first use. */
  readonly shipped: ConfiguredLimits | undefined;
}

interface PolicySection {
  readonly key: SectionName;
  readonly schema: AnySchema;
  readonly variable: string;
}

const RATELIMITS: PolicySection = { key: "ratelimits", schema: ratelimitsSchema, variable: "DOCSTOKG_RLIMITS_YAML" };
const BREAKERS: PolicySection = { key: "breakers", schema: breakersSchema, variable: "DOCSTOKG_BREAKERS_YAML" };

/**
 * Loads the policy: shipped files, then the user's files or objects, then environment, then flags; a later layer wins,
 * field by field. Throws one ConfigError with the problems of all layers. If each layer is valid but the merged values
 * are not, it may list only the first problem.
 */
export async function loadPolicy(sources: PolicySources = {}): Promise<LoadedPolicy> {
  const problems: ConfigProblem[] = checkSources(sources);
  // Values of the wrong type cannot be read any further.
  if (problems.length > 0) throw new ConfigError(problems);
  const files = {
    ratelimits: await readFiles(RATELIMITS, sources),
    breakers: await readFiles(BREAKERS, sources),
  };
  const names = knownNames(files);
  const limits = loadSection(RATELIMITS, files.ratelimits, sources, names, problems);
  const breakers = loadSection(BREAKERS, files.breakers, sources, names, problems);
  const identities = await collect(problems, () => loadIdentities(sources));
  problems.push(...unusableServices(identities?.services ?? [], names.services, limits));
  if (problems.length > 0 || identities === undefined) throw new ConfigError(problems);
  return policyFromAssignments(limits, breakers, identities, () =>
    standsAlone(files.ratelimits.user.assignments)
      ? undefined
      : limitPoliciesFrom(assemble(mergeLayers([files.ratelimits.shipped.assignments])), "shipped", identities),
  );
}

/** A policy from the merged values of its layers. Throws a ConfigError that lists every problem. */
export function policyFromAssignments(
  limits: readonly Assignment[],
  breakers: readonly Assignment[],
  identities: Identities,
  makeShipped: () => ConfiguredLimits | undefined = () => undefined,
): LoadedPolicy {
  const ratelimits = resolve(limits, (options: RatelimitsOptions) => limitPoliciesFrom(options, "policy", identities));
  const { routing } = ratelimits.resolved;
  let shipped: ConfiguredLimits | undefined;
  return {
    ratelimits,
    breakers: resolve(breakers, (options: BreakersOptions) => breakerPoliciesFrom(options, "policy", routing)),
    identities,
    get shipped() {
      shipped ??= makeShipped();
      return shipped;
    },
  };
}

/** Whether limits or breakers name this canonical host. A port counts only where the policy names it. */
export function namesHost({ ratelimits, breakers }: LoadedPolicy, host: string): boolean {
  return ratelimits.resolved.routing.isNamed(host) || Object.hasOwn(breakers.options.hosts ?? {}, host);
}

/** Services of `identities.yaml` whose fields would be sent nowhere. */
function unusableServices(
  named: readonly string[],
  known: ReadonlySet<string>,
  limits: readonly Assignment[],
): readonly ConfigProblem[] {
  const perHost = new Set(
    limits
      .filter(({ path: [first, , field], value }) => first === "services" && field === "per_host" && value === true)
      .map(({ path: [, service] }) => service),
  );
  const list = new ProblemList();
  for (const service of named) {
    const add = (makeMessage: () => string) =>
      list.add(() => ({ where: "identities", path: `services.${service}`, message: makeMessage() }));
    if (!known.has(service)) add(() => unknownServiceMessage(service, known));
    else if (perHost.has(service))
      add(() => "a service with per_host has no members to send fields to; name its hosts under hosts");
  }
  return list.problems;
}

function unknownServiceMessage(service: string, known: ReadonlySet<string>): string {
  const suggested = nearest(service, [...known]);
  const hint = suggested === undefined ? "" : `; did you mean ${suggested}?`;
  return `ratelimits.yaml has no service of this name${hint}`;
}

async function collect<Value>(problems: ConfigProblem[], load: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

/**
 * Resolves the merged values of a section. If they are invalid although each layer is valid, the problem names the source
 * that set the key last.
 */
function resolve<Options, Resolved>(
  assignments: readonly Assignment[],
  make: (options: Options) => Resolved,
): LoadedSection<Options, Resolved> {
  const options = assemble(assignments) as Options;
  let index: SourceIndex | undefined;
  try {
    const resolved = make(options);
    return {
      assignments,
      options,
      resolved,
      get index() {
        index ??= new SourceIndex(assignments);
        return index;
      },
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(
      error.problems.map(problem => ({ ...problem, where: sourceOf(assignments, problem.path) ?? problem.where })),
      { cause: error },
    );
  }
}

function sourceOf(assignments: readonly Assignment[], path: string): string | undefined {
  return assignments.findLast(assignment => `${path}.`.startsWith(`${assignment.path.join(".")}.`))?.where;
}

/** The layers that come from files or objects. */
interface FileLayers {
  readonly shipped: PolicyLayer;
  readonly user: PolicyLayer;
}

async function readFiles({ key, variable }: PolicySection, sources: PolicySources): Promise<FileLayers> {
  const { env = {} } = sources;
  return {
    shipped: { assignments: shippedValues(key), problems: [] },
    user: await readUserLayer(key, variable, sources[key], env),
  };
}

function loadSection(
  { key, schema }: PolicySection,
  files: FileLayers,
  { env = {}, overrides = {} }: PolicySources,
  names: KnownNames,
  problems: ConfigProblem[],
): readonly Assignment[] {
  const layers: Readonly<Record<(typeof LAYERS)[number], PolicyLayer>> = {
    ...files,
    environment: readEnvironment(env, key, names),
    flags: readFlags(key, overrides, names),
  };
  for (const name of LAYERS) {
    const layer = layers[name];
    problems.push(...layer.problems);
    // The shipped files were checked when the package was built, and most other layers are empty.
    if (name !== "shipped" && layer.assignments.length > 0)
      problems.push(...problemsOf(schema, layer.assignments, key));
  }
  return mergeLayers(usedLayers(layers).map(name => layers[name].assignments));
}

/** Without the shipped file, if the user's file stands alone. */
function usedLayers({ user }: Pick<FileLayers, "user">): readonly (typeof LAYERS)[number][] {
  return LAYERS.filter(name => name !== "shipped" || !standsAlone(user.assignments));
}

/** The hosts and services that the files list. Services are those of `ratelimits.yaml`, also for breakers. */
function knownNames(files: Readonly<Record<SectionName, FileLayers>>): KnownNames {
  const namesUnder = (key: string, ...sections: readonly FileLayers[]) => {
    const names = new Set<string>();
    for (const { shipped, user } of sections)
      for (const layer of standsAlone(user.assignments) ? [user] : [shipped, user])
        for (const { path } of layer.assignments) if (path[0] === key && path[1] !== undefined) names.add(path[1]);
    return names;
  };
  return {
    hosts: namesUnder("hosts", files.ratelimits, files.breakers),
    services: namesUnder("services", files.ratelimits),
  };
}
