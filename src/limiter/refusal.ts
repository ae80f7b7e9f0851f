import type { Constraint } from "../errors.ts";
import type { WaitEstimate } from "./estimate.ts";

/** A refusal as a value, which costs no stack trace. */
export interface Refusal {
  /**
   * Milliseconds until the same request could be sent, at least 1. Undefined when a concurrency slot is missing,
   * because the time of its release is unknown.
   */
  readonly retryAfterMs: number | undefined;
  /** The limit that decided. */
  readonly constraint: Constraint;
}

/** The refusal of a request that could start when the estimate says. */
export function refusalOf({ readyUs, constraint }: WaitEstimate, nowUs: number): Refusal {
  const isUnknown = constraint.kind === "concurrency";
  return { retryAfterMs: isUnknown ? undefined : Math.max(1, Math.ceil((readyUs - nowUs) / 1000)), constraint };
}
