import type { Rate } from "./rate.ts";

/** Limits that an operator has ordered for a role or the total of a host or service, or the order that has ended them. */
export interface OrderedLimit {
  /** Empty if the order is for `maxConcurrent` alone. */
  readonly rates: readonly Rate[];
  /** The most requests in flight. Undefined if the order leaves this limit as it is. */
  readonly maxConcurrent?: number | undefined;
  /** They replace the limits of the policy. Otherwise they can only tighten them. */
  readonly isForced: boolean;
  /** Why: one line. */
  readonly reason: string;
  /** The operator that gave the order. */
  readonly by: string;
  /** When the order ends; 0 for an order that ends the one before. */
  readonly untilUs: number;
}
