import type { BoundInput, Interval } from "./bound.ts";
import type { Counting } from "./counters.ts";
import type { ServerRule } from "./limit-enforcer.ts";
import type { RaceLimits, RaceRole } from "./limits.ts";

/** A block of the event loop: its start, counted from the start of the run, and its duration. */
export interface Stall {
  readonly atMs: number;
  readonly ms: number;
}

/** nginx with `limit_req`: a rate such as `10r/s`, and how many requests may come at once beyond it. */
export interface NginxSetup {
  readonly kind: "nginx";
  readonly rate: string;
  readonly burst: number;
}

/** Express with a middleware that counts the first window of `limits`. */
export interface Middleware {
  readonly kind: "express-rate-limit" | "rate-limiter-flexible";
}

export type RequestCounts = Readonly<Partial<Record<RaceRole, number>>>;

export interface Scenario {
  /** Such as `r5-retry-after`; also the name of its results file. */
  readonly id: string;
  /** Such as `R5`, for `--only`: all variants together. */
  readonly race: string;
  readonly title: string;
  /** One or two sentences for the document. */
  readonly what: string;
  readonly limits: RaceLimits;
  /** The requests of each process, all started at once. */
  readonly loads: readonly RequestCounts[];
  readonly counting?: Counting;
  /** Software that services use; without it, the server of this project, which counts any window. */
  readonly server?: NginxSetup | Middleware;
  readonly outage?: ServerRule["outage"];
  readonly halvedAtMs?: number;
  readonly stalls?: readonly Stall[];
  readonly store?: "sqlite" | "redis";
  /** Only clients that can share limits through the store. */
  readonly needsSharedStore?: boolean;
  readonly isVirtual?: boolean;
  /** Number of hosts, with one request each over a dispatcher that responds at once. */
  readonly hosts?: number;
  /** Whether docstokg is run a second time, with `shape: smooth`. */
  readonly hasSmooth?: boolean;
  /** The targets of docstokg. */
  readonly promises: readonly Promised[];
}

/** `near-optimum`: within 3 % of the optimum with guard. `ahead`: better than every other client. */
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

/** The input of the bound, with the measured stalls and the end of the outage that the server announced. */
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
