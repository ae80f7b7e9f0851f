import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { Charge } from "./charge.ts";
import type { CostLog } from "./cost-log.ts";
import { ForecastLog } from "./forecast-log.ts";
import { RoleBudget } from "./role-budget.ts";

/** A budget, and the requests that the forecast has charged to it. */
export class ForecastBudget {
  readonly #budget: Budget;
  readonly #log: ForecastLog;
  readonly #costs: readonly { readonly cost: CostLog; readonly log: ForecastLog }[];
  readonly hasSlot: boolean;

  constructor(budget: Budget, nowUs: number, ignoresSlots: boolean) {
    this.#budget = budget;
    this.hasSlot = ignoresSlots || budget.hasSlot;
    this.#log = new ForecastLog(budget.log, budget.windows, nowUs);
    this.#costs = budget.costLogs.map(cost => ({ cost, log: new ForecastLog(cost.log, cost.windows, nowUs) }));
  }

  charge({ units, costs }: Charge, atUs: number): void {
    if (units === 0) return;
    this.#log.charge(units, atUs);
    for (const { cost, log } of this.#costs) log.charge(costs?.get(cost.unit) ?? 0, atUs);
  }

  readyUs({ units, costs }: Charge): number {
    const { holdUntilUs, spacingUs } = this.#budget;
    if (!this.hasSlot) return Number.POSITIVE_INFINITY;
    if (units === 0) return holdUntilUs;
    let readyUs = Math.max(holdUntilUs, this.#leaseUs(units), this.#log.readyUs(units));
    if (spacingUs > 0) readyUs = Math.max(readyUs, this.#log.spacedUs(spacingUs, units));
    for (const { cost, log } of this.#costs) {
      const amount = costs?.get(cost.unit) ?? 0;
      if (amount > 0) readyUs = Math.max(readyUs, cost.leaseUs(log.charged + amount), log.readyUs(amount));
    }
    return readyUs;
  }

  /** The limit that decides `readyUs`. */
  constraint(charge: Charge): Constraint {
    const { name: owner, holdUntilUs, spacingUs, policy, storeConstraint } = this.#budget;
    if (charge.units > 0 && storeConstraint !== undefined) return storeConstraint;
    if (!this.hasSlot) return this.#budget.slotConstraint("max_concurrent");
    const { units } = charge;
    const readyUs = this.readyUs(charge);
    const label = units === 0 ? undefined : this.#bindingLabel(charge, readyUs);
    if (label !== undefined) return { kind: "window", owner, limit: label };
    const labels = policy.labels.join("+");
    if (holdUntilUs === readyUs) return { kind: "cooldown", owner, limit: "cooldown" };
    if (spacingUs > 0 && this.#log.spacedUs(spacingUs, units) === readyUs)
      return { kind: "spacing", owner, limit: `even spacing of ${labels}` };
    return { kind: "window", owner, limit: `${labels} (shared by all processes)` };
  }

  #bindingLabel({ units, costs }: Charge, readyUs: number): string | undefined {
    const own = this.#budget.policy.labels[this.#log.bindingIndex(units, readyUs)];
    if (own !== undefined) return own;
    for (const { cost, log } of this.#costs) {
      const amount = costs?.get(cost.unit) ?? 0;
      const label = amount > 0 ? cost.labels[log.bindingIndex(amount, readyUs)] : undefined;
      if (label !== undefined) return label;
    }
    return undefined;
  }

  /** When the store may have units again. */
  #leaseUs(units: number): number {
    const unitLease = this.#budget instanceof RoleBudget ? this.#budget.unitLease : undefined;
    return unitLease?.readyUs(this.#log.charged + units) ?? 0;
  }
}
