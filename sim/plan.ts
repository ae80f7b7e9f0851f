/** A scenario as plain data: what a seed stands for, what a trace can be replayed from, and what shrinking works on. */
import type { Role } from "../src/policy/roles.ts";

export interface Plan {
  readonly seed: number;
  readonly network: NetworkPlan;
  readonly hosts: readonly HostPlan[];
  readonly breakers: BreakerPlan;
  readonly processes: readonly ProcessPlan[];
  /** Undefined where every process has its own limits. */
  readonly store: StorePlan | undefined;
  readonly retryAttempts: number;
  readonly unreadBodyMs: number;
  readonly maxInFlight: number;
  readonly isAimd: boolean;
  readonly calls: readonly CallPlan[];
  readonly faults: readonly Fault[];
  /** What the hub is told instead of the truth, to see whether the laws notice. Never drawn from a seed. */
  readonly sabotage?: Sabotage;
}

export interface NetworkPlan {
  /** One way, at the least. */
  readonly delayMs: number;
  /** At the most as much again. The guard is for this. */
  readonly jitterMs: number;
  readonly connectMs: number;
  /** How much later a server may notice a request over a new connection. */
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
  readonly guardMs: number;
  readonly isSmooth: boolean;
  readonly server: ServerPlan;
}

export interface ServerPlan {
  readonly model: ServerModel;
  /** What it enforces of what it says: 1 for an honest one. */
  readonly enforcedShare: number;
  readonly enforcesConcurrency: boolean;
  readonly serviceMs: number;
  readonly announces: Announces;
  readonly maxAgeS: number;
  readonly wallOffsetMs: number;
}

/** Whether and how answers speak of limits. */
export type Announces = "nothing" | "ietf" | "x-ratelimit" | "crossref";

export interface BreakerPlan {
  readonly failMax: number;
  readonly resetS: number;
  readonly trialCalls: number;
  readonly jitterMs: number;
  readonly retryAfterCapS: number;
  readonly isAdaptive: boolean;
  readonly rolling: { readonly threshold: number; readonly windowS: number; readonly cooldownS: number } | undefined;
}

export interface ProcessPlan {
  readonly originUs: number;
  readonly wallOffsetMs: number;
  /** Timers come early by so much at the most. */
  readonly earlyUs: number;
  /** What passes between two looks at the clock, at the most. */
  readonly computeUs: number;
}

export interface StorePlan {
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
  readonly weight: number;
  readonly maxWaitMs: number | undefined;
  readonly deadlineMs: number | undefined;
  readonly abortMs: number | undefined;
  readonly isRead: boolean;
}

/** How a server asks to be left alone. */
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
  | { readonly kind: "reload"; readonly atMs: number; readonly factor: number }
  | {
      readonly kind: "operator";
      readonly atMs: number;
      readonly process: number;
      readonly host: string;
      readonly openS: number;
    };

/** Ways to make the hub break a law on purpose. */
export type Sabotage =
  | "loose-rates"
  | "no-guard"
  | "many-probes"
  | "short-cooldowns"
  | "short-resets"
  | "wide-slots"
  | "generous-store"
  | "forgetful-cache"
  | "lost-ends";

/** When the last fault is over. A step of a clock is over at once, however far it goes. */
export function lastFaultMs({ faults }: Plan): number {
  return Math.max(0, ...faults.map(fault => fault.atMs + ("ms" in fault && fault.kind !== "wall-step" ? fault.ms : 0)));
}
