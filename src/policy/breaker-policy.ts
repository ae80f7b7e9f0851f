import type { CircuitPolicy } from "../core/breaker/circuit.ts";
import type { ClassifyRules } from "../core/breaker/classify.ts";
import { type BreakersOptions, parseBreakers } from "./breaker-schema.ts";
import { DEFAULT_BREAKERS } from "./defaults.ts";
import type { Role } from "./roles.ts";

export interface RollingWindowPolicy {
  readonly enabled: boolean;
  readonly windowUs: number;
  readonly threshold: number;
  readonly cooldownMs: number;
}

/** Where the registry asks which numbers hold. Hosts are canonical here. */
export interface BreakerPolicies {
  readonly rules: ClassifyRules;
  readonly rollingWindow: RollingWindowPolicy;
  readonly jitterMs: number;
  readonly isAdaptive: boolean;
  circuit(host: string, role: Role): CircuitPolicy;
  resolver(name: string): CircuitPolicy;
  /** What would be refused is told, and let go. */
  isShadow(host: string): boolean;
  /** The longest cooldown that a server's Retry-After can ask of us. */
  retryAfterCapMs(host: string): number;
}

/** Policies from the shape of `breakers.yaml`: a host's role, then the host, then the role's default, then the default. */
export function breakerPoliciesFrom(options: BreakersOptions, where: string): BreakerPolicies {
  const { mode, defaults, advanced, hosts, resolvers } = parseBreakers(options, where);
  const { trial_calls, success_threshold, jitter_ms } = defaults.half_open;
  const { enabled, window_s, threshold_failures, cooldown_s } = advanced.rolling_window;
  const isAdaptive = advanced.adaptive_reset.enabled;
  const capMs = (host: string) =>
    1000 * (hosts[host]?.retry_after_cap_s ?? defaults.retry_after_cap_s ?? DEFAULT_BREAKERS.retry_after_cap_s);
  const circuitPolicyOf = (failMax: number, resetS: number, trialCalls: number, resetCapMs: number): CircuitPolicy =>
    Object.freeze({
      failMax,
      resetUs: Math.round(resetS * 1e6),
      resetCapUs: resetCapMs * 1000,
      trialCalls,
      successThreshold: success_threshold,
      isAdaptive,
    });
  const known = new Map<string, CircuitPolicy>();
  return {
    rules: {
      failureStatuses: new Set(defaults.classify.failure_statuses),
      neutralStatuses: new Set(defaults.classify.neutral_statuses),
    },
    rollingWindow: { enabled, windowUs: window_s * 1e6, threshold: threshold_failures, cooldownMs: cooldown_s * 1000 },
    jitterMs: jitter_ms,
    isAdaptive,
    isShadow: host => (hosts[host]?.mode ?? mode) === "shadow",
    retryAfterCapMs: capMs,
    circuit(host, role) {
      // Hosts that are not listed share one policy for each role.
      const key = hosts[host] === undefined ? ` ${role}` : `${host} ${role}`;
      const found = known.get(key);
      if (found !== undefined) return found;
      const layers = [
        hosts[host]?.roles?.[role],
        hosts[host],
        defaults.roles[role],
        defaults,
        DEFAULT_BREAKERS.roles[role],
      ];
      const failMax = layers.find(layer => layer?.fail_max !== undefined)?.fail_max ?? DEFAULT_BREAKERS.fail_max;
      const resetS =
        layers.find(layer => layer?.reset_timeout_s !== undefined)?.reset_timeout_s ?? DEFAULT_BREAKERS.reset_timeout_s;
      const policy = circuitPolicyOf(failMax, resetS, trial_calls[role], capMs(host));
      known.set(key, policy);
      return policy;
    },
    resolver(name) {
      const { fail_max, reset_timeout_s } = { ...DEFAULT_BREAKERS, ...defaults, ...resolvers[name] };
      return circuitPolicyOf(
        fail_max ?? DEFAULT_BREAKERS.fail_max,
        reset_timeout_s ?? DEFAULT_BREAKERS.reset_timeout_s,
        1,
        capMs(""),
      );
    },
  };
}
