import type { LoopStalls } from "./loop-monitor.ts";

/** The messages between the benchmark and its processes. */
export interface RoundOrder {
  readonly entrant: string;
  readonly callers: number;
  readonly keys: number;
  readonly ms: number;
}

export interface RoundResult extends LoopStalls {
  readonly perSecond: number;
  /** The duration of each acquire. */
  readonly tookUs: Float64Array;
  /** Acquires that failed because the store was locked or unavailable. */
  readonly failed: number;
}

export const LIMITER = "docstokg, RateLimiter";
export const EACH = "docstokg, an exchange for each caller";
export const TOGETHER = "docstokg, one exchange for all waiting callers";
export const NOTHING = "no store, 50 us of work per turn";
