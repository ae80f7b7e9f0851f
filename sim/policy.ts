import type { PolicyOptions } from "../src/http/hub-options.ts";
import type { BreakersOptions } from "../src/policy/breaker-schema.ts";
import type { HostLimits, RatelimitsOptions, RoleLimits } from "../src/policy/ratelimit-schema.ts";
import type { HostPlan, Plan, RatePlan, RoleLimitsPlan, Sabotage } from "./plan.ts";

/** The policy of all hubs of a plan. `factor` scales every rate, for reloads. */
export function policyOfPlan(plan: Plan, factor = 1): PolicyOptions {
  const { hosts, maxInFlight, isAimd, sabotage } = plan;
  const ratelimits: RatelimitsOptions = {
    extends: "none",
    hosts: Object.fromEntries(hosts.map(host => [host.name, limitsOf(host, factor, sabotage)])),
    global: { max_inflight: maxInFlight },
    aimd: { enabled: isAimd, window_s: 5 },
  };
  return { ratelimits, breakers: breakersOf(plan), identities: { extends: "none" } };
}

/** A rate after a reload with this factor. */
export function scaled({ limit, windowMs }: RatePlan, factor: number): RatePlan {
  return { limit: Math.max(1, Math.round(limit * factor)), windowMs };
}

function limitsOf({ roleLimits, total, guardMs, isSmooth }: HostPlan, factor: number, sabotage?: Sabotage): HostLimits {
  const common = {
    guard_ms: sabotage === "no-guard" ? 0 : guardMs,
    shape: isSmooth ? ("smooth" as const) : ("burst" as const),
  };
  const rates = (plans: readonly RatePlan[]) => plans.map(rate => rateText(scaled(rate, factor), sabotage));
  const limits: Record<string, RoleLimits> = {};
  for (const [role, { rates: own, maxDelayMs, maxConcurrent, countsHead }] of Object.entries<RoleLimitsPlan>(
    roleLimits,
  )) {
    limits[role] = {
      ...common,
      rates: rates(own),
      max_delay_ms: maxDelayMs,
      max_concurrent: sabotage === "wide-slots" ? maxConcurrent + 3 : maxConcurrent,
      count_head: countsHead,
    };
  }
  return total.length === 0 ? limits : { ...limits, total: { ...common, rates: rates(total) } };
}

function rateText({ limit, windowMs }: RatePlan, sabotage: Sabotage | undefined): string {
  return `${sabotage === "loose-rates" ? limit + 1 : limit}/${windowMs}ms`;
}

function breakersOf({ breakers, sabotage }: Plan): BreakersOptions {
  const { failMax, resetS, trialCalls, jitterMs, retryAfterCapS, isAdaptive, rolling } = breakers;
  const trials = sabotage === "many-probes" ? trialCalls + 2 : trialCalls;
  return {
    extends: "none",
    defaults: {
      fail_max: failMax,
      reset_timeout_s: sabotage === "short-resets" ? resetS / 4 : resetS,
      retry_after_cap_s: sabotage === "short-cooldowns" ? 0.5 : retryAfterCapS,
      half_open: { trial_calls: { metadata: trials, landing: trials, artifact: trials }, jitter_ms: jitterMs },
    },
    advanced: {
      rolling_window: {
        enabled: rolling !== undefined,
        ...(rolling && {
          threshold_failures: rolling.threshold,
          window_s: rolling.windowS,
          cooldown_s: rolling.cooldownS,
        }),
      },
      adaptive_reset: { enabled: isAdaptive },
      ramp_up: { enabled: sabotage !== "no-ramp-up" },
    },
  };
}
