import type { CircuitPolicy } from "../core/breaker/circuit.ts";
import type { ClassifyRules } from "../core/breaker/classify.ts";
import type { RampPolicy } from "../core/breaker/ramp.ts";
import type { SlowCallPolicy } from "../core/breaker/slow-call-window.ts";
import { NO_THROTTLE_RULES, type ThrottleRule } from "../core/breaker/throttle-rule.ts";
import { canonicalHost } from "../core/text/host.ts";
import type { ThrottleRuleOptions } from "./breaker-options.ts";
import { type BreakersOptions, type ParsedBreakers, parseBreakers } from "./breaker-schema.ts";
import { DEFAULT_BREAKERS } from "./defaults.ts";
import { commonName } from "./partition-name.ts";
import {
  breakerEntryPaths,
  breakerModePaths,
  circuitPaths,
  effectiveValue,
  type KeyPath,
  type LimitScope,
  resolverPaths,
  scopePlaces,
  valueAt,
} from "./precedence.ts";
import type { Role } from "./roles.ts";
import { type RoutedRequest, Routing } from "./routing.ts";
import { serviceName, serviceOfName } from "./service-name.ts";

export interface RollingWindowPolicy {
  readonly enabled: boolean;
  readonly windowUs: number;
  readonly threshold: number;
  readonly cooldownMs: number;
  /** Undefined when slow calls do not count. */
  readonly slowCalls: SlowCallPolicy | undefined;
}

/** The circuits and cooldowns of a request, by name: a host, or `service <name>`. */
export interface BreakerRoute {
  /** The canonical host of the request. */
  readonly host: string;
  /** The owner of its circuits: the host if `breakers.yaml` lists it, otherwise its service, otherwise the host. */
  readonly circuit: string;
  /** The unit that its answer can put in cooldown: the service, else the first listed host (without a port), else the host. */
  readonly cooldown: string;
}

/**
 * The settings of every circuit, as the registry reads them. A unit is a canonical host, `service <name>`, or a partition
 * of one of the two.
 */
export interface BreakerPolicies {
  readonly rules: ClassifyRules;
  readonly rollingWindow: RollingWindowPolicy;
  readonly jitterMs: number;
  readonly isAdaptive: boolean;
  /** The units of a request. Throws a RangeError when the text is not a host. */
  route(host: string, path?: string): BreakerRoute;
  /** Whether paths of this host have units of their own. */
  hasPaths(host: string): boolean;
  /** The entries of `breakers.yaml` that decide for a unit. */
  scopeOf(unit: string): LimitScope;
  circuit(unit: string, role: Role): CircuitPolicy;
  resolver(name: string): CircuitPolicy;
  /** The rules that recognise throttles of a unit. */
  throttleRules(unit: string): readonly ThrottleRule[];
  /** Whether traffic is held back after a cooldown. */
  readonly hasRampUp: boolean;
  readonly rampUp: (role: Role) => RampPolicy;
  /** Calls that would be refused are reported and sent. */
  isShadow(unit: string): boolean;
  /** Each partition has circuits and cooldowns of its own. */
  isPerPartition(unit: string): boolean;
  /** The longest cooldown that a server's Retry-After can cause. */
  retryAfterCapMs(unit: string): number;
}

function throttleRulesAt(document: unknown, scope: LimitScope): readonly ThrottleRule[] {
  const places: readonly KeyPath[] = [["defaults"], ...scopePlaces(scope).map(({ path }) => path)];
  const rules = places.flatMap(path => (valueAt(document, [...path, "throttles"]) ?? []) as ThrottleRuleOptions[]);
  return rules.length === 0 ? NO_THROTTLE_RULES : rules.map(throttleRuleOf);
}

function throttleRuleOf({ status, header, body, retry_after_s }: ThrottleRuleOptions): ThrottleRule {
  const [name = "", ...rest] = (header ?? "").toLowerCase().split(":");
  return {
    statuses: status && new Set(status),
    header: header === undefined ? undefined : { name, text: rest.join(":").trim() },
    body: body?.toLowerCase(),
    retryAfterMs: retry_after_s === undefined ? undefined : retry_after_s * 1000,
  };
}

function rollingWindowPolicy(options: ParsedBreakers["advanced"]["rolling_window"]): RollingWindowPolicy {
  const { enabled, window_s, threshold_failures, cooldown_s, slow_call_ms, slow_call_share, slow_call_min } = options;
  const windowUs = window_s * 1e6;
  const slowCalls =
    enabled && slow_call_ms !== undefined
      ? { slowUs: slow_call_ms * 1000, share: slow_call_share, minCalls: slow_call_min, windowUs }
      : undefined;
  return { enabled, windowUs, threshold: threshold_failures, cooldownMs: cooldown_s * 1000, slowCalls };
}

/** A resolver's calls go to many hosts, so one trial call decides for all of them. */
const RESOLVER_TRIAL_CALLS = 1;

/** Not the name of a host or service: stands for the defaults. */
export const NO_UNIT = "";
const NO_SERVICES = new Routing([], []);
/** Bounds the memory for a crawler that calls very many hosts. */
const UNLISTED_MAX = 16_384;

/** The settings of one scope. */
interface ScopeSettings {
  readonly isShadow: boolean;
  readonly isPerPartition: boolean;
  readonly retryAfterCapMs: number;
  readonly throttleRules: readonly ThrottleRule[];
  readonly circuits: Map<Role, CircuitPolicy>;
}

/**
 * Breaker policies from options in the shape of `breakers.yaml`.
 * @param routing the services of `ratelimits.yaml`; without it every host is a unit of its own
 */
export function breakerPoliciesFrom(
  options: BreakersOptions,
  where: string,
  routing: Routing = NO_SERVICES,
): BreakerPolicies {
  const document = parseBreakers(options, where, routing !== NO_SERVICES);
  const { defaults, advanced, hosts } = document;
  const { trial_calls, success_threshold, jitter_ms } = defaults.half_open;
  const isAdaptive = advanced.adaptive_reset.enabled;
  const numberAt = (paths: readonly KeyPath[], builtIn: number) => effectiveValue(document, paths, builtIn);
  const circuitPolicyOf = (failMax: number, resetS: number, trialCalls: number, resetCapMs: number): CircuitPolicy =>
    Object.freeze({
      failMax,
      resetUs: Math.round(resetS * 1e6),
      resetCapUs: resetCapMs * 1000,
      trialCalls,
      successThreshold: success_threshold,
      isAdaptive,
    });
  const listedHosts = (names: readonly string[]) => names.filter(name => Object.hasOwn(hosts, name));
  const scopeOf = (unitOrPartition: string): LimitScope => {
    const unit = commonName(unitOrPartition);
    if (unit === NO_UNIT) return {};
    const service = serviceOfName(unit);
    if (service !== undefined) return { service };
    const { service: ofHost, names } = routing.find(unit);
    return { service: ofHost, listed: listedHosts(names) };
  };
  const settingsByUnit = new Map<string, ScopeSettings>();
  const routes = new WeakMap<RoutedRequest, BreakerRoute>();
  // Every call reads these, so they are resolved once for each entry. Units without an entry share the defaults.
  const settingsOf = (unitOrPartition: string): ScopeSettings => {
    const unit = commonName(unitOrPartition);
    const found = settingsByUnit.get(unit);
    if (found !== undefined) return found;
    const scope = scopeOf(unit);
    const isListed = scope.service !== undefined || (scope.listed?.length ?? 0) > 0;
    if (!isListed && unit !== NO_UNIT) {
      const unlisted = settingsOf(NO_UNIT);
      if (settingsByUnit.size < UNLISTED_MAX) settingsByUnit.set(unit, unlisted);
      return unlisted;
    }
    const mode = effectiveValue<string>(document, breakerModePaths(scope), DEFAULT_BREAKERS.mode);
    const retryAfterCapS = numberAt(breakerEntryPaths("retry_after_cap_s", scope), DEFAULT_BREAKERS.retry_after_cap_s);
    const per = effectiveValue<string>(document, breakerEntryPaths("per", scope), DEFAULT_BREAKERS.per);
    const settings = {
      isShadow: mode === "shadow",
      isPerPartition: per === "partition",
      retryAfterCapMs: 1000 * retryAfterCapS,
      throttleRules: throttleRulesAt(document, scope),
      circuits: new Map(),
    };
    settingsByUnit.set(unit, settings);
    return settings;
  };
  return {
    rules: {
      failureStatuses: new Set(defaults.classify.failure_statuses),
      neutralStatuses: new Set(defaults.classify.neutral_statuses),
    },
    rollingWindow: rollingWindowPolicy(advanced.rolling_window),
    jitterMs: jitter_ms,
    isAdaptive,
    throttleRules: unit => settingsOf(unit).throttleRules,
    hasRampUp: advanced.ramp_up.enabled,
    // With `maxCalls` 0, a ramp-up ends before it begins.
    rampUp: role => ({
      trialCalls: trial_calls[role],
      maxCalls: advanced.ramp_up.enabled ? advanced.ramp_up.max_calls : 0,
    }),
    route(text, path) {
      const routed = routing.find(text, path);
      const found = routes.get(routed);
      if (found !== undefined) return found;
      const { listed, names, service } = routed;
      const name = text === routed.host ? text : canonicalHost(text);
      // A port that only breakers.yaml names belongs to the name too.
      const host = Object.hasOwn(hosts, name) ? name : routed.host;
      const ofBreakers = listedHosts(names);
      const shared = service === undefined ? undefined : serviceName(service);
      const circuit = ofBreakers.at(-1) ?? shared ?? host;
      const route = Object.freeze({ host, circuit, cooldown: shared ?? listed[0] ?? ofBreakers[0] ?? host });
      routes.set(routed, route);
      return route;
    },
    hasPaths: text => routing.hasPaths(text),
    scopeOf,
    isShadow: unit => settingsOf(unit).isShadow,
    isPerPartition: unit => settingsOf(unit).isPerPartition,
    retryAfterCapMs: unit => settingsOf(unit).retryAfterCapMs,
    circuit(unit, role) {
      const { circuits, retryAfterCapMs } = settingsOf(unit);
      const found = circuits.get(role);
      if (found !== undefined) return found;
      const scope = scopeOf(unit);
      const builtIn = DEFAULT_BREAKERS.roles[role];
      const policy = circuitPolicyOf(
        numberAt(circuitPaths("fail_max", role, scope), builtIn.fail_max),
        numberAt(circuitPaths("reset_timeout_s", role, scope), builtIn.reset_timeout_s),
        trial_calls[role],
        // A provider may ask for a wait of an hour or a day; an outage must not cause such a reset.
        Math.min(retryAfterCapMs, settingsOf(NO_UNIT).retryAfterCapMs),
      );
      circuits.set(role, policy);
      return policy;
    },
    resolver: name =>
      circuitPolicyOf(
        numberAt(resolverPaths("fail_max", name), DEFAULT_BREAKERS.fail_max),
        numberAt(resolverPaths("reset_timeout_s", name), DEFAULT_BREAKERS.reset_timeout_s),
        RESOLVER_TRIAL_CALLS,
        settingsOf(NO_UNIT).retryAfterCapMs,
      ),
  };
}
