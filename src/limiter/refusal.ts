import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import { constraintOf } from "./estimate.ts";
import type { RoleBudget } from "./role-budget.ts";

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

/**
 * The refusal of a request that could start at `readyUs`, when `wanted` units, with those queued before it, must find
 * capacity.
 */
export function refusalOf(
  root: Budget,
  roleBudget: RoleBudget,
  wanted: number,
  readyUs: number,
  nowUs: number,
): Refusal {
  const constraint = constraintOf(root, roleBudget, wanted, readyUs, nowUs);
  const isUnknown = constraint.kind === "concurrency";
  return { retryAfterMs: isUnknown ? undefined : Math.max(1, Math.ceil((readyUs - nowUs) / 1000)), constraint };
}
