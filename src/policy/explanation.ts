import { defaultClassifyRules } from "../core/breaker/classify.ts";
import { withoutCredentials } from "../core/text/passwords.ts";
import type { ThrottleRuleOptions } from "./breaker-options.ts";
import { budgetUnitOf } from "./budget-unit.ts";
import { DEFAULT_AIMD, DEFAULT_BACKEND, DEFAULT_BREAKERS, DEFAULT_LIMITS } from "./defaults.ts";
import type { SentKeys } from "./identity.ts";
import type { SectionName } from "./layer.ts";
import type { LoadedPolicy } from "./load.ts";
import { commonName } from "./partition-name.ts";
import {
  adaptsPaths,
  breakerEntryPaths,
  breakerModePaths,
  CIRCUIT_FIELDS,
  circuitPaths,
  effectiveMap,
  type KeyPath,
  type LimitScope,
  ROLE_COST_FIELDS,
  ROLE_LIMIT_FIELDS,
  resolverPaths,
  roleLimitPaths,
  scopePlaces,
  TOTAL_FIELDS,
  totalPaths,
  totalPlaces,
} from "./precedence.ts";
import type { Role } from "./roles.ts";
import { isServiceName } from "./service-name.ts";
import { type PolicyTarget, policyTarget } from "./target.ts";

/** One place that sets a value. */
export interface ValueSource {
  /** `limits.yaml:12`, an environment variable, a flag, or `built-in default`. */
  readonly where: string;
  /** The key that is set, such as `hosts.api.example.org.metadata.rates`; empty for a built-in default. */
  readonly path: string;
  /**
   * The value as it is written there. The credentials of a store's address are removed, and each rule of `throttles` is a
   * text.
   */
  readonly value: unknown;
  /** The comment after the value in its YAML file: the source of the number and its date. Absent without a comment. */
  readonly note?: string;
}

/** One value of the effective policy, and every place that sets it. */
export interface ExplainedValue {
  /** The name of the value, such as `rates`, `total.max_concurrent` or `breaker.fail_max`. */
  readonly field: string;
  /** The effective value: that of the last source. */
  readonly value: unknown;
  /** Weakest first; the last one wins. */
  readonly sources: readonly ValueSource[];
}

const BUILT_IN = "built-in default";
const RESOLVER = "resolver ";

/**
 * The values that hold for a host and role, and where each came from.
 * @param sentKeys what the requests carry. @default what requests over https to the host and path carry
 */
export function explainPolicy(
  policy: LoadedPolicy,
  host: string,
  role: Role,
  path?: string,
  sentKeys?: SentKeys,
): readonly ExplainedValue[] {
  const { breakers, ratelimits } = policy;
  const { circuit } = breakers.resolved.route(host, path);
  return [
    ...explainLimits(policy, ratelimits.resolved.scopeOf(host, path, sentKeys), role),
    ...explainCircuit(policy, breakers.resolved.scopeOf(circuit), role),
  ];
}

/**
 * The same for a URL, or for a name from a snapshot or event: a host, `service <name>` or `resolver <name>`. The keys in
 * a name (`service ncbi with NCBI_API_KEY`) decide, and a partition has the values of its host or service. Throws a
 * RangeError for any other text.
 */
export function explainTarget(policy: LoadedPolicy, target: string | URL, role: Role): readonly ExplainedValue[] {
  if (typeof target !== "string") {
    const { host, path, sentKeys } = policyTarget(policy, target);
    return explainPolicy(policy, host, role, path, sentKeys);
  }
  const name = commonName(target);
  if (name.startsWith(RESOLVER)) return explainResolver(policy, name.slice(RESOLVER.length));
  const { service, host, tiers } = budgetUnitOf(name);
  if (host === undefined || service !== undefined) {
    // The budgets of a service with `per_host` have the keys of their hosts in their names.
    const scope = { service, tiers: host === undefined ? tiers : [] };
    return [...explainLimits(policy, scope, role), ...explainCircuit(policy, { service }, role)];
  }
  const found = policyTarget(policy, host);
  return explainPolicy(policy, found.host, role, found.path, tiers.length === 0 ? found.sentKeys : new Set(tiers));
}

/**
 * The limits of the role budget with this name, and of its host if it is that of a service with `per_host`.
 * @param givenKeys what the requests carry, if the name has no keys
 */
export function explainBudget(
  policy: LoadedPolicy,
  name: string,
  role: Role,
  givenPath?: string,
  givenKeys?: SentKeys,
): readonly ExplainedValue[] {
  const { service, host, path = givenPath, tiers } = budgetUnitOf(name);
  if (host === undefined) return explainLimits(policy, { service, tiers }, role);
  const own = service === undefined ? [] : explainLimits(policy, { service }, role);
  const sentKeys = tiers.length === 0 ? givenKeys : new Set(tiers);
  return [...own, ...explainLimits(policy, policy.ratelimits.resolved.scopeOf(host, path, sentKeys), role)];
}

/** `, without API_KEY, which this URL does not get`, for keys that https sends to the host at its standard port. */
export function withheldKeysText({ ratelimits: { resolved } }: LoadedPolicy, target: PolicyTarget): string {
  const { host, path, sentKeys } = target;
  const applied = new Set(resolved.scopeOf(host, path, sentKeys).tiers);
  const withheld = (resolved.scopeOf(host, path).tiers ?? []).filter(tier => !applied.has(tier));
  return withheld.length === 0 ? "" : `, without ${withheld.join(" and ")}, which this URL does not get`;
}

/** The limits of one entry of the policy: a host, a service, or the defaults. */
export function explainLimits(policy: LoadedPolicy, scope: LimitScope, role: Role): readonly ExplainedValue[] {
  const builtIn: Readonly<Record<string, unknown>> = DEFAULT_LIMITS[role];
  const roleValues = ROLE_LIMIT_FIELDS.map(field =>
    explained(policy, "ratelimits", field, roleLimitPaths(field, role, scope), builtIn[field]),
  );
  const costValues = ROLE_COST_FIELDS.flatMap(field =>
    explainedUnits(policy, field, roleLimitPaths(field, role, scope)),
  );
  const totals = totalPlaces(scope).flatMap((place, index) => {
    const shown = index === 0 && !isServiceName(place.name) ? "total" : `${place.name} total`;
    return [
      ...TOTAL_FIELDS.map(field =>
        explained(policy, "ratelimits", `${shown}.${field}`, totalPaths(field, place, scope)),
      ),
      ...explainedUnits(policy, `${shown}.costs`, totalPaths("costs", place, scope)),
    ];
  });
  // If no entry sets it, `explainSettings` shows `aimd.enabled`.
  const adapts = explained(policy, "ratelimits", "aimd", adaptsPaths(scope).slice(1));
  return withSources([...roleValues, ...costValues, adapts, ...totals]);
}

/** The breaker of one entry of the policy and a role; with an empty scope, of every host that is not listed. */
export function explainCircuit(policy: LoadedPolicy, scope: LimitScope, role: Role): readonly ExplainedValue[] {
  const value = (field: string, paths: readonly KeyPath[], builtIn: unknown) =>
    explained(policy, "breakers", `breaker.${field}`, paths, builtIn);
  const trialCalls: KeyPath = ["defaults", "half_open", "trial_calls", role];
  return withSources([
    value("mode", breakerModePaths(scope), DEFAULT_BREAKERS.mode),
    ...CIRCUIT_FIELDS.map(field => value(field, circuitPaths(field, role, scope), DEFAULT_BREAKERS.roles[role][field])),
    value("retry_after_cap_s", breakerEntryPaths("retry_after_cap_s", scope), DEFAULT_BREAKERS.retry_after_cap_s),
    value("per", breakerEntryPaths("per", scope), DEFAULT_BREAKERS.per),
    value("trial_calls", [trialCalls], DEFAULT_BREAKERS.half_open.trial_calls[role]),
    ...explainedThrottles(policy, scope),
  ]);
}

/** The rules that recognise throttles: one value for each entry that has some, because all of them apply together. */
function explainedThrottles(policy: LoadedPolicy, scope: LimitScope): readonly ExplainedValue[] {
  const ofDefaults = { field: "breaker.throttles", path: ["defaults"] };
  const ofPlaces = scopePlaces(scope).map(({ name, path }) => ({ field: `${name} breaker.throttles`, path }));
  return [ofDefaults, ...ofPlaces].map(({ field, path }) => {
    const { sources } = explained(policy, "breakers", field, [[...path, "throttles"]]);
    const shown = sources.map(source => ({ ...source, value: [source.value].flat().map(throttleText) }));
    return { field, value: shown.at(-1)?.value, sources: shown };
  });
}

/** `status 403, 503; header cf-mitigated: challenge`. */
function throttleText(rule: unknown): string {
  return Object.entries(rule as ThrottleRuleOptions)
    .map(([key, value]) => `${key} ${[value].flat().join(", ")}`)
    .join("; ");
}

/** The circuit of a resolver. */
export function explainResolver(policy: LoadedPolicy, resolver: string): readonly ExplainedValue[] {
  return withSources(
    CIRCUIT_FIELDS.map(field =>
      explained(policy, "breakers", `resolver.${field}`, resolverPaths(field, resolver), DEFAULT_BREAKERS[field]),
    ),
  );
}

/** The settings that hold for every host. */
export function explainSettings(policy: LoadedPolicy): readonly ExplainedValue[] {
  const { half_open, adaptive_reset, ramp_up, cooldown_store } = DEFAULT_BREAKERS;
  const rolling_window = { ...DEFAULT_BREAKERS.rolling_window, slow_call_ms: undefined };
  const classify = {
    failure_statuses: [...defaultClassifyRules.failureStatuses],
    neutral_statuses: [...defaultClassifyRules.neutralStatuses],
  };
  const { jitter_ms, success_threshold } = half_open;
  const valuesBelow = (
    section: SectionName,
    shown: string,
    path: KeyPath,
    builtIn: Readonly<Record<string, unknown>>,
  ) =>
    Object.entries(builtIn).map(([field, value]) =>
      explained(policy, section, `${shown}.${field}`, [[...path, field]], value),
    );
  return withSources([
    ...valuesBelow("ratelimits", "backend", ["backend"], DEFAULT_BACKEND),
    ...valuesBelow("ratelimits", "global", ["global"], { max_inflight: undefined }),
    ...valuesBelow("ratelimits", "aimd", ["aimd"], DEFAULT_AIMD),
    ...valuesBelow("breakers", "breaker", ["defaults", "half_open"], { jitter_ms, success_threshold }),
    ...valuesBelow("breakers", "breaker.rolling_window", ["advanced", "rolling_window"], rolling_window),
    ...valuesBelow("breakers", "breaker.adaptive_reset", ["advanced", "adaptive_reset"], adaptive_reset),
    ...valuesBelow("breakers", "breaker.ramp_up", ["advanced", "ramp_up"], ramp_up),
    ...valuesBelow("breakers", "breaker.classify", ["defaults", "classify"], classify),
    ...valuesBelow("breakers", "breaker.cooldown_store", ["advanced", "cooldown_store"], cooldown_store),
  ]);
}

/** A map by unit: one value for each unit that is set. */
function explainedUnits(policy: LoadedPolicy, field: string, paths: readonly KeyPath[]): readonly ExplainedValue[] {
  return Object.keys(effectiveMap(policy.ratelimits.options, paths)).map(unit =>
    explained(
      policy,
      "ratelimits",
      `${field}.${unit}`,
      paths.map(path => [...path, unit]),
    ),
  );
}

/** The winning source of one value; undefined when only the built-in default holds. */
export function winningSource(
  policy: LoadedPolicy,
  section: SectionName,
  paths: readonly KeyPath[],
): string | undefined {
  const { where } = explained(policy, section, "", paths).sources.at(-1) ?? {};
  return where;
}

function explained(
  policy: LoadedPolicy,
  section: SectionName,
  field: string,
  paths: readonly KeyPath[],
  builtIn?: unknown,
): ExplainedValue {
  const found = paths.flatMap(path =>
    policy[section].index.at(path).map(({ where, value, note }) => ({
      where,
      path: path.join("."),
      value: path.at(-1) === "dsn" ? shownDsn(value) : value,
      ...(note === undefined ? {} : { note }),
    })),
  );
  const sources = builtIn === undefined ? found : [{ where: BUILT_IN, path: "", value: builtIn }, ...found];
  return { field, value: sources.at(-1)?.value, sources };
}

function shownDsn(value: unknown): unknown {
  return typeof value === "string" ? withoutCredentials(value) : value;
}

/** Without the values that no source sets and that have no default, such as max_concurrent. */
function withSources(values: readonly ExplainedValue[]): readonly ExplainedValue[] {
  return values.filter(({ sources }) => sources.length > 0);
}
