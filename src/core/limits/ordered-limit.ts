import type { Rate } from "./rate.ts";

/** Rates that an operator has ordered for one role of a host or service, or the order that has ended them. */
export interface OrderedLimit {
  readonly rates: readonly Rate[];
  /** They replace the rates of the policy. Otherwise they can only tighten them. */
  readonly isForced: boolean;
  /** Why: one line. */
  readonly reason: string;
  /** Who gave the order. */
  readonly by: string;
  /** When the order ends; 0 for an order that ends the one before. */
  readonly untilUs: number;
}
