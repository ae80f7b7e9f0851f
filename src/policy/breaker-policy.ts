import type { CircuitPolicy } from "../core/breaker/circuit.ts";
import type { ClassifyRules } from "../core/breaker/classify.ts";
import { type BreakersOptions, parseBreakers } from "./breaker-schema.ts";
import { DEFAULT_BREAKERS } from "./defaults.ts";
import {
  breakerModePaths,
  circuitPaths,
  effectiveValue,
  type KeyPath,
  resolverPaths,
  retryAfterCapPaths,
} from "./precedence.ts";
import type { Role } from "./roles.ts";

export interface RollingWindowPolicy {
  readonly enabled: boolean;
  readonly windowUs: number;
  readonly threshold: number;
  readonly cooldownMs: number;
}

/** The settings of every circuit, as the registry reads them. Hosts are canonical here. */
export interface BreakerPolicies {
  readonly rules: ClassifyRules;
  readonly rollingWindow: RollingWindowPolicy;
  readonly jitterMs: number;
  readonly isAdaptive: boolean;
  circuit(host: string, role: Role): CircuitPolicy;
  resolver(name: string): CircuitPolicy;
  /** Calls that would be refused are reported and sent. */
  isShadow(host: string): boolean;
  /** The longest cooldown that a server's Retry-After can cause. */
  retryAfterCapMs(host: string): number;
}

/** A resolver's calls go to many hosts, so one trial call decides for all of them. */
const RESOLVER_TRIAL_CALLS = 1;

/** Breaker policies from options in the shape of `breakers.yaml`. */
export function breakerPoliciesFrom(options: BreakersOptions, where: string): BreakerPolicies {
  const document = parseBreakers(options, where);
  const { defaults, advanced, hosts } = document;
  const { trial_calls, success_threshold, jitter_ms } = defaults.half_open;
  const { enabled, window_s, threshold_failures, cooldown_s } = advanced.rolling_window;
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
  const isShadowAt = (host?: string) =>
    effectiveValue<string>(document, breakerModePaths(host), DEFAULT_BREAKERS.mode) === "shadow";
  const capMsAt = (host?: string) => 1000 * numberAt(retryAfterCapPaths(host), DEFAULT_BREAKERS.retry_after_cap_s);
  // Every call reads these two, so they are resolved once for each listed host.
  const shadowHosts = new Map(Object.keys(hosts).map(host => [host, isShadowAt(host)]));
  const hostCapsMs = new Map(Object.keys(hosts).map(host => [host, capMsAt(host)]));
  const isShadowByDefault = isShadowAt();
  const defaultCapMs = capMsAt();
  const retryAfterCapMs = (host: string) => hostCapsMs.get(host) ?? defaultCapMs;
  const circuits = new Map<string, CircuitPolicy>();
  return {
    rules: {
      failureStatuses: new Set(defaults.classify.failure_statuses),
      neutralStatuses: new Set(defaults.classify.neutral_statuses),
    },
    rollingWindow: { enabled, windowUs: window_s * 1e6, threshold: threshold_failures, cooldownMs: cooldown_s * 1000 },
    jitterMs: jitter_ms,
    isAdaptive,
    isShadow: host => shadowHosts.get(host) ?? isShadowByDefault,
    retryAfterCapMs,
    circuit(host, role) {
      // Hosts that are not listed share one policy for each role.
      const name = Object.hasOwn(hosts, host) ? host : undefined;
      const key = `${name ?? ""} ${role}`;
      const known = circuits.get(key);
      if (known !== undefined) return known;
      const builtIn = DEFAULT_BREAKERS.roles[role];
      const policy = circuitPolicyOf(
        numberAt(circuitPaths("fail_max", role, name), builtIn.fail_max),
        numberAt(circuitPaths("reset_timeout_s", role, name), builtIn.reset_timeout_s),
        trial_calls[role],
        retryAfterCapMs(host),
      );
      circuits.set(key, policy);
      return policy;
    },
    resolver: name =>
      circuitPolicyOf(
        numberAt(resolverPaths("fail_max", name), DEFAULT_BREAKERS.fail_max),
        numberAt(resolverPaths("reset_timeout_s", name), DEFAULT_BREAKERS.reset_timeout_s),
        RESOLVER_TRIAL_CALLS,
        defaultCapMs,
      ),
  };
}
