import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { shareOf } from "../policy/limits-share.ts";
import type { LimitPart, Role } from "../policy/roles.ts";
import { budgetName, mayConcern, type OrderedKey, OrderedLimits } from "./ordered-limits.ts";

/** The limits of the policy with the orders of operators; a share of them while the store is away. */
export class LimitsInForce {
  /** The limits of the policy, undivided and without orders. */
  #configured: LimitPolicies;
  readonly #orders = new OrderedLimits();
  /** The number of processes that the limits are divided by. */
  shareCount = 1;
  /** The limits that requests keep to now. */
  current: LimitPolicies;

  constructor(configured: LimitPolicies) {
    this.#configured = configured;
    this.current = configured;
  }

  configure(limits: LimitPolicies): void {
    this.#configured = limits;
  }

  /** Applies the configured limits, divided by `count`; 1 restores them. */
  divide(count: number): void {
    this.shareCount = count;
    this.current = shareOf(this.#orders.applyTo(this.#configured), count);
  }

  /** The newest order replaces the one before, or ends it. Throws a RangeError for an invalid host. */
  setOrder(name: string, part: LimitPart, limit: OrderedLimit): void {
    // Before the order is kept: with an order that cannot be applied, every later change would throw too.
    budgetName(this.#configured, name, part);
    this.#orders.set(name, part, limit);
    this.divide(this.shareCount);
  }

  /** When the next order ends; undefined if there is none. */
  get nextOrderEndUs(): number | undefined {
    return this.#orders.nextEndUs;
  }

  /** Ends the orders whose time is over. */
  removeEnded(nowUs: number): readonly OrderedKey[] {
    const ended = this.#orders.removeEnded(nowUs);
    if (ended.length > 0) this.divide(this.shareCount);
    return ended;
  }

  /** Whether orders for this host or service and role can change the limits of the budget with that name. */
  mayConcern(name: string, role: Role): (budget: string) => boolean {
    return mayConcern(this.#configured, name, role);
  }
}
