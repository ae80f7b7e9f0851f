import type { Constraint } from "../errors.ts";
import { bindingLimit, type LimitTimes } from "./binding-limit.ts";
import type { Budget } from "./budget.ts";
import type { Charge } from "./charge.ts";
import type { CostLog } from "./cost-log.ts";
import { EstimatedLog } from "./estimated-log.ts";
import { RoleBudget } from "./role-budget.ts";

/** A budget, and the requests that the estimate has charged to it. */
export class EstimatedBudget implements LimitTimes {
  readonly nowUs: number;
  readonly #budget: Budget;
  readonly #log: EstimatedLog;
  readonly #costs: ReadonlyMap<CostLog, EstimatedLog>;
  readonly hasSlot: boolean;

  constructor(budget: Budget, nowUs: number, ignoresSlots: boolean) {
    this.nowUs = nowUs;
    this.#budget = budget;
    this.hasSlot = ignoresSlots || budget.hasSlot;
    this.#log = new EstimatedLog(budget.log, budget.windows, nowUs);
    this.#costs = new Map(budget.costLogs.map(cost => [cost, new EstimatedLog(cost.log, cost.windows, nowUs)]));
  }

  charge({ units, costs }: Charge, atUs: number): void {
    if (units === 0) return;
    this.#log.charge(units, atUs);
    for (const [cost, log] of this.#costs) log.charge(costs?.get(cost.unit) ?? 0, atUs);
  }

  /** Whether the units of the request are leased. */
  holdsUnits(units: number): boolean {
    return this.#budget instanceof RoleBudget && this.#budget.holdsUnits(this.#log.charged + units);
  }

  get hasPending(): boolean {
    return this.#budget.hasPending;
  }

  /** `isLeased`: the request needs nothing of the store in the budgets above its own. */
  readyUs(charge: Charge, isLeased = false): number {
    const { units, costs } = charge;
    const { holdUntilUs, spacingUs } = this.#budget;
    if (!this.hasSlot) return Number.POSITIVE_INFINITY;
    if (units === 0 || this.#budget.exceedsOwnShare(charge)) return holdUntilUs;
    let readyUs = Math.max(holdUntilUs, isLeased ? 0 : this.leaseUs(units), this.#log.readyUs(units));
    if (spacingUs > 0) readyUs = Math.max(readyUs, this.spacedUs(units));
    for (const [cost, log] of this.#costs) {
      const amount = costs?.get(cost.unit) ?? 0;
      if (amount > 0) readyUs = Math.max(readyUs, this.costLeaseUs(cost, amount), log.readyUs(amount));
    }
    return readyUs;
  }

  /** The limit that decides `readyUs`. */
  constraint(charge: Charge): Constraint {
    if (!this.hasSlot && this.#budget.storeConstraint(charge) === undefined)
      return this.#budget.slotConstraint("max_concurrent");
    return bindingLimit(this.#budget, charge, this);
  }

  windowUs(index: number, units: number): number {
    return this.#log.windowUs(index, units);
  }

  spacedUs(units: number): number {
    return this.#log.spacedUs(this.#budget.spacingOfUs(units, this.#log.lastUnits), units);
  }

  leaseUs(units: number): number {
    return this.#budget.leaseUs(this.#log.charged + units);
  }

  costWindowUs(cost: CostLog, index: number, amount: number): number {
    return this.#costs.get(cost)?.windowUs(index, amount) ?? 0;
  }

  costLeaseUs(cost: CostLog, amount: number): number {
    return cost.leaseUs((this.#costs.get(cost)?.charged ?? 0) + amount);
  }
}
