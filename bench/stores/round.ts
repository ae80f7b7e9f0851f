import type { LoopStalls } from "./loop-monitor.ts";

/** What the bench and its processes say to each other. */
export interface RoundOrder {
  readonly entrant: string;
  readonly callers: number;
  readonly keys: number;
  readonly ms: number;
}

export interface RoundResult extends LoopStalls {
  readonly perSecond: number;
  /** Of every unit that was acquired. */
  readonly tookUs: Float64Array;
  /** Acquires that failed because the store was locked or away. */
  readonly failed: number;
}

export const EACH = "docstokg, an exchange for each caller";
export const TOGETHER = "docstokg, one exchange for all who wait";
export const NOTHING = "no store, 50 us of work a turn";
