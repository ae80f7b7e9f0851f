import type { Window } from "../core/limits/window-log.ts";
import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { RoleBudget } from "./role-budget.ts";

/** A budget, and the units that the forecast has charged to it. */
export class ForecastBudget {
  readonly #budget: Budget;
  readonly #nowUs: number;
  /** The least time by which a request that was decided starts before its bound ends. */
  slackUs = Number.POSITIVE_INFINITY;
  /** A unit that is granted and not written yet counts as written now, so that starts move as long as it is not. */
  hasPending = false;
  /** Units that were written or granted in reality. */
  readonly #known: number;
  readonly #startsUs: number[] = [];
  readonly hasSlot: boolean;

  constructor(budget: Budget, nowUs: number, ignoresSlots: boolean) {
    this.#budget = budget;
    this.#nowUs = nowUs;
    this.hasSlot = ignoresSlots || budget.hasSlot;
    this.#known = budget.log.written + budget.log.pending;
  }

  charge(units: number, atUs: number): void {
    for (let unit = 0; unit < units; unit += 1) this.#startsUs.push(atUs);
  }

  readyUs(units: number): number {
    const { holdUntilUs, windows, spacingUs } = this.#budget;
    if (!this.hasSlot) return Number.POSITIVE_INFINITY;
    if (units === 0) return holdUntilUs;
    let readyUs = Math.max(holdUntilUs, this.#leaseUs(units));
    if (spacingUs > 0) readyUs = Math.max(readyUs, this.#spacedUs(spacingUs, units));
    for (let index = 0; index < windows.length; index += 1)
      readyUs = Math.max(readyUs, this.#windowUs(index, windows[index] as Window, units));
    return readyUs;
  }

  /** The limit that decides `readyUs`. */
  constraint(units: number): Constraint {
    const { name: owner, holdUntilUs, windows, spacingUs, policy } = this.#budget;
    if (!this.hasSlot) return this.#budget.slotConstraint("max_concurrent");
    const readyUs = this.readyUs(units);
    const binding = units === 0 ? -1 : windows.findIndex((window, at) => this.#windowUs(at, window, units) === readyUs);
    const label = policy.labels[binding];
    if (label !== undefined) return { kind: "window", owner, limit: label };
    const labels = policy.labels.join("+");
    if (holdUntilUs === readyUs) return { kind: "cooldown", owner, limit: "cooldown" };
    if (spacingUs > 0 && this.#spacedUs(spacingUs, units) === readyUs)
      return { kind: "spacing", owner, limit: `even spacing of ${labels}` };
    return { kind: "window", owner, limit: `${labels} (shared by all processes)` };
  }

  #windowUs(index: number, window: Window, units: number): number {
    const unit = this.#known + this.#startsUs.length + units - window.limit;
    return unit <= 0 ? 0 : this.#stampUs(index, window, unit) + window.spanUs;
  }

  /** As `WindowLog.stampUs`, over real and forecast units: a coarse window knows only every `grain`-th stamp. */
  #stampUs(index: number, window: Window, unit: number): number {
    const { log } = this.#budget;
    const stamped = Math.ceil(unit / window.grain) * window.grain;
    if (this.#startsUs.length === 0 || stamped <= this.#known) return log.stampUs(index, window, unit, this.#nowUs);
    return this.#startsUs[Math.min(stamped - this.#known, this.#startsUs.length) - 1] as number;
  }

  #spacedUs(spacingUs: number, units: number): number {
    const lastUs = this.#startsUs.at(-1);
    if (lastUs !== undefined) return lastUs + spacingUs;
    return this.#budget.log.earliestUs([], spacingUs, units, this.#nowUs);
  }

  /** When the store may have units again. */
  #leaseUs(units: number): number {
    const { unitLease } = this.#budget as Partial<RoleBudget>;
    if (unitLease === undefined || this.#startsUs.length + units <= unitLease.unusedUnits) return 0;
    return unitLease.notBeforeUs;
  }
}
