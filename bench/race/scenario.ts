import type { BoundInput, Interval } from "./bound.ts";
import type { Counting } from "./counters.ts";
import type { ServerRule } from "./limit-enforcer.ts";
import type { RaceLimits, RaceRole } from "./limits.ts";

/** An event loop that stands still: from when on, counted from the start, and for how long. */
export interface Stall {
  readonly atMs: number;
  readonly ms: number;
}

export type RequestCounts = Readonly<Partial<Record<RaceRole, number>>>;

export interface Scenario {
  /** `r5-told`: also the name of its file of results. */
  readonly id: string;
  /** `R5`: as `--only` has it, for all variants together. */
  readonly race: string;
  readonly title: string;
  /** One sentence or two: what is done, and what a reader has to know. */
  readonly what: string;
  readonly limits: RaceLimits;
  /** What each process has to do; everything is asked for at once. */
  readonly loads: readonly RequestCounts[];
  readonly counting?: Counting;
  readonly outage?: ServerRule["outage"];
  readonly halvedAtMs?: number;
  readonly stalls?: readonly Stall[];
  readonly store?: "sqlite" | "redis";
  /** Nothing but those who can share through the store. */
  readonly needsSharedStore?: boolean;
  readonly isVirtual?: boolean;
  /** So many hosts with one request each, over a wire that answers at once. */
  readonly hosts?: number;
  /** Whether ours takes part a second time, with smoothed sends. */
  readonly hasSmooth?: boolean;
  /** What is promised for ours. */
  readonly promises: readonly Promised[];
}

/** `no-rejections`: none at all. `near-optimum`: within 3 % of the guarded bound. `ahead`: of every peer. */
export type Promised = "no-rejections" | "near-optimum" | "ahead";

export function ruleOf({ limits, counting, outage, halvedAtMs }: Scenario): ServerRule {
  return {
    limits,
    ...(counting && { counting }),
    ...(outage && { outage }),
    ...(halvedAtMs !== undefined && { halvedAtMs }),
  };
}

function loadOf({ loads }: Scenario): RequestCounts {
  const sum = (role: RaceRole) => loads.reduce((count, load) => count + (load[role] ?? 0), 0);
  return { metadata: sum("metadata"), artifact: sum("artifact") };
}

export function requestsOf(scenario: Scenario): number {
  const { metadata = 0, artifact = 0 } = loadOf(scenario);
  return scenario.hosts ?? metadata + artifact;
}

/** What the bound is computed for: with the stalls as they were, and the outage as the server told of it. */
export function boundInputOf(scenario: Scenario, stalls: readonly Interval[] = [], retryAfterUntilMs = 0): BoundInput {
  const { limits, outage, halvedAtMs } = scenario;
  const down = outage && { fromMs: outage.fromMs, toMs: Math.max(outage.toMs, retryAfterUntilMs) };
  return {
    requests: loadOf(scenario),
    limits,
    closed: [...(down ? [down] : []), ...stalls].toSorted((a, b) => a.fromMs - b.fromMs),
    ...(halvedAtMs !== undefined && { halvedAtMs }),
  };
}
