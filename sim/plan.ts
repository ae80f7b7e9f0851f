/** A scenario as plain data: generated from a seed, saved for replay, and made smaller by shrinking. */
import type { Role } from "../src/policy/roles.ts";

export interface Plan {
  readonly seed: number;
  readonly network: NetworkPlan;
  readonly hosts: readonly HostPlan[];
  readonly breakers: BreakerPlan;
  readonly processes: readonly ProcessPlan[];
  /** Undefined when the processes share no store. */
  readonly store: StorePlan | undefined;
  readonly retryAttempts: number;
  readonly unreadBodyMs: number;
  readonly maxInFlight: number;
  readonly isAimd: boolean;
  /** False when the totals of hosts are not in the policy until a reload adds them. */
  readonly startsWithTotals: boolean;
  readonly calls: readonly CallPlan[];
  readonly faults: readonly Fault[];
  /** How many idle keys of each role a process keeps before it evicts some. Absent: as many as a hub. */
  readonly keptKeys?: number | undefined;
  /** A fault built into the hub, to test that a law detects it. Never generated from a seed. */
  readonly sabotage?: Sabotage;
}

export interface NetworkPlan {
  /** Minimum one-way delay. */
  readonly delayMs: number;
  /** Maximum additional one-way delay, which the guard must absorb. */
  readonly jitterMs: number;
  readonly connectMs: number;
  /** Maximum additional delay of the first request on a new connection. */
  readonly coldMs: number;
  readonly keepAliveMs: number;
  readonly headersTimeoutMs: number;
}

export interface RatePlan {
  readonly limit: number;
  readonly windowMs: number;
}

export interface RoleLimitsPlan {
  readonly rates: readonly RatePlan[];
  readonly maxDelayMs: number;
  readonly maxConcurrent: number;
  readonly countsHead: boolean;
}

export type ServerModel = "fixed-window" | "sliding-log" | "tokens" | "gcra" | "two-buckets";

export interface HostPlan {
  readonly name: string;
  readonly roleLimits: Readonly<Partial<Record<Role, RoleLimitsPlan>>>;
  readonly total: readonly RatePlan[];
  /** Undefined when only requests are limited. */
  readonly credits: CreditsPlan | undefined;
  readonly guardMs: number;
  readonly isSmooth: boolean;
  /** The limits of each role exist once for each partition (`per: partition`), below the common total. Absent: they do not. */
  readonly isPerPartition?: true | undefined;
  /** Circuits and cooldowns exist once for each partition too. Absent: they do not. */
  readonly hasPartitionBreakers?: true | undefined;
  readonly server: ServerPlan;
}

/** Limits of a unit other than requests. */
export interface CreditsPlan {
  /** Of each role on its own. */
  readonly rates: readonly RatePlan[];
  /** Of all roles together. */
  readonly total: readonly RatePlan[];
  /** What a call uses that does not say so: `call_costs`. */
  readonly usual: number;
  /** Responses say what the call has really used. */
  readonly isSettled: boolean;
}

export interface ServerPlan {
  readonly model: ServerModel;
  /** Share of its announced limits that it allows: 1 for an honest server. */
  readonly enforcedShare: number;
  readonly enforcesConcurrency: boolean;
  readonly serviceMs: number;
  readonly announces: Announces;
  readonly maxAgeS: number;
  readonly wallOffsetMs: number;
}

/** Which rate limit headers responses have. */
export type Announces = "nothing" | "ietf" | "x-ratelimit" | "crossref";

export interface BreakerPlan {
  readonly failMax: number;
  readonly resetS: number;
  readonly trialCalls: number;
  readonly jitterMs: number;
  readonly retryAfterCapS: number;
  readonly isAdaptive: boolean;
  readonly rolling: { readonly threshold: number; readonly windowS: number; readonly cooldownS: number } | undefined;
  /** Slow calls start a cooldown of the rolling window. Absent if they do not count. */
  readonly slowCalls?: SlowCallsPlan | undefined;
}

export interface SlowCallsPlan {
  readonly ms: number;
  readonly share: number;
  readonly minCalls: number;
}

export interface ProcessPlan {
  readonly originUs: number;
  readonly wallOffsetMs: number;
  /** Maximum time that timers fire early. */
  readonly earlyUs: number;
  /** Maximum time that passes between two reads of the clock. */
  readonly computeUs: number;
}

export interface StorePlan {
  /** `when_store_away`. */
  readonly whenAway: "share" | "wait" | "refuse";
  readonly delayMs: number;
  readonly jitterMs: number;
}

export interface CallPlan {
  readonly id: number;
  readonly atMs: number;
  readonly process: number;
  readonly host: string;
  readonly role: Role;
  readonly method: "GET" | "HEAD" | "POST";
  readonly page: number;
  /** The tenant or API key of the call. Absent: none. */
  readonly partition?: string | undefined;
  readonly weight: number;
  /** Credits that the caller expects to use. Undefined: the policy's. */
  readonly credits: number | undefined;
  /** Credits that the call really uses, where responses say so. */
  readonly usedCredits: number;
  /** How long after the start of the request the first chunk of its body comes, with the headers. */
  readonly bodyMs: number;
  readonly maxWaitMs: number | undefined;
  readonly deadlineMs: number | undefined;
  readonly abortMs: number | undefined;
  readonly isRead: boolean;
}

/** The form of `Retry-After` that a server sends. */
export type RetryAfterForm =
  | "seconds"
  | "fraction"
  | "date"
  | "date-alone"
  | "rfc850"
  | "asctime"
  | "twice"
  | "none"
  | "zero"
  | "past"
  | "negative"
  | "junk"
  | "huge";

export type OutageHow = "refuse" | "reset" | "hang" | "error" | "cut";
export type Lie = "junk" | "absurd" | "spent" | "looser" | "contradiction";

export type Fault =
  | { readonly kind: "stall"; readonly atMs: number; readonly process: number; readonly ms: number }
  | { readonly kind: "suspend"; readonly atMs: number; readonly ms: number }
  | { readonly kind: "wall-step"; readonly atMs: number; readonly process: number; readonly ms: number }
  | { readonly kind: "kill"; readonly atMs: number; readonly process: number }
  | { readonly kind: "outage"; readonly atMs: number; readonly ms: number; readonly host: string; how: OutageHow }
  | {
      readonly kind: "throttle";
      readonly atMs: number;
      readonly ms: number;
      readonly host: string;
      readonly status: 429 | 503 | 403;
      readonly form: RetryAfterForm;
      readonly seconds: number;
    }
  | { readonly kind: "lie"; readonly atMs: number; readonly ms: number; readonly host: string; readonly lie: Lie }
  | { readonly kind: "store-away"; readonly atMs: number; readonly ms: number; readonly isSilent: boolean }
  | { readonly kind: "store-restart"; readonly atMs: number }
  | { readonly kind: "store-loss"; readonly atMs: number; readonly lostMs: number }
  | {
      readonly kind: "reload";
      readonly atMs: number;
      readonly factor: number;
      readonly hasTotals: boolean;
      /** False when the limits of all partitions become common. Absent: each partition has its own. */
      readonly isPartitioned?: false | undefined;
    }
  | {
      readonly kind: "operator";
      readonly atMs: number;
      readonly process: number;
      readonly host: string;
      readonly openS: number;
    };

/** Ways to make the hub violate a law on purpose. */
export type Sabotage =
  | "loose-rates"
  | "no-guard"
  | "many-probes"
  | "short-cooldowns"
  | "no-ramp-up"
  | "deaf-to-slow-calls"
  | "hasty-slow-calls"
  | "hasty-circuits"
  | "short-resets"
  | "wide-slots"
  | "generous-store"
  | "forgetful-cache"
  | "forgetful-reload"
  | "loose-costs"
  | "unheard-costs"
  | "early-stamps"
  | "share-when-away"
  | "long-delays"
  | "exhausted-bounds"
  | "early-estimates"
  | "late-estimates"
  | "lost-ends"
  | "deaf-to-partitions"
  | "split-partitions"
  | "common-breakers"
  | "split-breakers";

/** When the last fault ends. A step of a clock ends at once; its `ms` is the distance. */
export function lastFaultMs({ faults }: Plan): number {
  return Math.max(0, ...faults.map(fault => fault.atMs + ("ms" in fault && fault.kind !== "wall-step" ? fault.ms : 0)));
}
