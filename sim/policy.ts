import type { PolicyOptions } from "../src/http/hub-options.ts";
import type { BreakersOptions } from "../src/policy/breaker-schema.ts";
import { partitionName } from "../src/policy/partition-name.ts";
import type { HostLimits, RatelimitsOptions, RoleLimits } from "../src/policy/ratelimit-schema.ts";
import type { CallPlan, HostPlan, Plan, RatePlan, RoleLimitsPlan, Sabotage } from "./plan.ts";

/** Response header that says how many credits a request has used. */
export const CREDITS_HEADER = "x-credits-used";

/** What a reload changes. */
export interface PolicyVersion {
  /** Scales every rate. */
  readonly factor: number;
  readonly hasTotals: boolean;
  /** Whether partitions have limits of their own, at hosts with `isPerPartition`. */
  readonly isPartitioned: boolean;
}

/** The policy before any reload. */
export function firstVersion({ startsWithTotals }: Plan): PolicyVersion {
  return { factor: 1, hasTotals: startsWithTotals, isPartitioned: true };
}

/** The policy of all hubs of a plan. */
export function policyOfPlan(plan: Plan, version: PolicyVersion = firstVersion(plan)): PolicyOptions {
  const { hosts, maxInFlight, isAimd, sabotage, store } = plan;
  const ratelimits: RatelimitsOptions = {
    extends: "none",
    hosts: Object.fromEntries(hosts.map(host => [host.name, limitsOf(host, version, sabotage)])),
    global: { max_inflight: maxInFlight },
    aimd: { enabled: isAimd, window_s: 5 },
    backend: { when_store_away: sabotage === "share-when-away" ? "share" : (store?.whenAway ?? "share") },
  };
  return { ratelimits, breakers: breakersOf(plan), identities: { extends: "none" } };
}

/** The name of the role budget that a call uses: its host, or one of its partitions. */
export function keyOf({ name, isPerPartition }: HostPlan, { partition }: CallPlan): string {
  return isPerPartition && partition !== undefined ? partitionName(name, partition) : name;
}

/** The name of the circuits and cooldowns that apply to a call: its host, or one of its partitions. */
export function breakerUnitOf({ name, hasPartitionBreakers }: HostPlan, { partition }: CallPlan): string {
  return hasPartitionBreakers && partition !== undefined ? partitionName(name, partition) : name;
}

/** Whether a reload joins the limits of all partitions. */
export function joinsPartitions({ faults }: Plan): boolean {
  return faults.some(fault => fault.kind === "reload" && fault.isPartitioned === false);
}

/** A rate after a reload with this factor. */
export function scaled({ limit, windowMs }: RatePlan, factor: number): RatePlan {
  return { limit: Math.max(1, Math.round(limit * factor)), windowMs };
}

function limitsOf(
  { roleLimits, total, credits, guardMs, isSmooth, isPerPartition }: HostPlan,
  { factor, hasTotals, isPartitioned }: PolicyVersion,
  sabotage?: Sabotage,
): HostLimits {
  const common = {
    guard_ms: sabotage === "no-guard" ? 0 : guardMs,
    shape: isSmooth ? ("smooth" as const) : ("burst" as const),
  };
  const rates = (plans: readonly RatePlan[]) => plans.map(rate => rateText(scaled(rate, factor), sabotage));
  const costs = (plans: readonly RatePlan[] = []) =>
    plans.length === 0 ? {} : { costs: { credits: plans.map(rate => costText(scaled(rate, factor), sabotage)) } };
  const limits: Record<string, RoleLimits> = {};
  for (const [role, { rates: own, maxDelayMs, maxConcurrent, countsHead }] of Object.entries<RoleLimitsPlan>(
    roleLimits,
  )) {
    limits[role] = {
      ...common,
      rates: rates(own),
      ...costs(credits?.rates),
      ...(credits && { call_costs: { credits: credits.usual }, cost_headers: { credits: CREDITS_HEADER } }),
      max_delay_ms: sabotage === "long-delays" ? 4 * maxDelayMs + 1000 : maxDelayMs,
      max_concurrent: sabotage === "wide-slots" ? maxConcurrent + 3 : maxConcurrent,
      count_head: countsHead,
      ...(isPerPartition && isPartitioned && { per: "partition" as const }),
    };
  }
  if (!hasTotals || total.length + (credits?.total.length ?? 0) === 0) return limits;
  const requests = total.length === 0 ? {} : { rates: rates(total) };
  return { ...limits, total: { ...common, ...requests, ...costs(credits?.total) } };
}

function rateText({ limit, windowMs }: RatePlan, sabotage: Sabotage | undefined): string {
  return `${sabotage === "loose-rates" ? limit + 1 : limit}/${windowMs}ms`;
}

function costText({ limit, windowMs }: RatePlan, sabotage: Sabotage | undefined): string {
  return `${sabotage === "loose-costs" ? 2 * limit : limit}/${windowMs}ms`;
}

function slowFactor(sabotage: Sabotage | undefined): number {
  if (sabotage === "deaf-to-slow-calls") return 10;
  return sabotage === "hasty-slow-calls" ? 1 / 30 : 1;
}

/** Whether the policy has circuits for each partition of a host. */
function isSplit({ hasPartitionBreakers }: HostPlan, sabotage: Sabotage | undefined): boolean {
  return (hasPartitionBreakers === true && sabotage !== "common-breakers") || sabotage === "split-breakers";
}

function breakersOf({ breakers, hosts, sabotage }: Plan): BreakersOptions {
  const { failMax, resetS, trialCalls, jitterMs, retryAfterCapS, isAdaptive, rolling, slowCalls } = breakers;
  const trials = sabotage === "many-probes" ? trialCalls + 2 : trialCalls;
  return {
    extends: "none",
    hosts: Object.fromEntries(
      hosts.filter(host => isSplit(host, sabotage)).map(({ name }) => [name, { per: "partition" as const }]),
    ),
    defaults: {
      fail_max: sabotage === "hasty-circuits" ? failMax - 1 : failMax,
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
          ...(slowCalls && {
            slow_call_ms: slowCalls.ms * slowFactor(sabotage),
            slow_call_share: slowCalls.share,
            slow_call_min: slowCalls.minCalls,
          }),
        }),
      },
      adaptive_reset: { enabled: isAdaptive },
      ramp_up: { enabled: sabotage !== "no-ramp-up" },
    },
  };
}
