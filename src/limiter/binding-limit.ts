import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { Charge } from "./charge.ts";
import type { CostLog } from "./cost-log.ts";

/** When the limits of one budget admit a request: a new one, or one behind the requests of an estimate. */
export interface LimitTimes {
  readonly nowUs: number;
  /** When the window with this index admits the units. */
  windowUs(index: number, units: number): number;
  /** When the even spacing of the budget admits the units. */
  spacedUs(units: number): number;
  /** When the store may have the units; 0 if they are leased, or if no store is asked. */
  leaseUs(units: number): number;
  /** When a window of another unit than requests admits the amount. */
  costWindowUs(cost: CostLog, index: number, amount: number): number;
  /** As `leaseUs`, for another unit than requests. */
  costLeaseUs(cost: CostLog, amount: number): number;
}

/**
 * The limit of a budget that admits the request last; of equal ones the shortest window, else the first in the order
 * below. Admission, refusals, snapshots and `why` all take the name from here, so that they agree. If the budget has no
 * other limit, it is the slots.
 */
export function bindingLimit(budget: Budget, charge: Charge, times: LimitTimes): Constraint {
  const { units, costs } = charge;
  const { name: owner, holdUntilUs, policy } = budget;
  const isHeld = holdUntilUs > times.nowUs;
  if (units === 0) return isHeld ? holdOf(budget) : budget.slotConstraint("max_concurrent");
  const storeConstraint = budget.storeConstraint(charge);
  if (storeConstraint !== undefined) return storeConstraint;
  const latest = new Latest();
  policy.labels.forEach((limit, index) => {
    latest.offer(times.windowUs(index, units), { kind: "window", owner, limit }, budget.windows[index]?.spanUs);
  });
  for (const cost of budget.costLogs) {
    const amount = costs?.get(cost.unit) ?? 0;
    if (amount === 0) continue;
    cost.labels.forEach((limit, index) => {
      latest.offer(times.costWindowUs(cost, index, amount), { kind: "window", owner, limit });
    });
    const shared = `${cost.labels.join("+") || cost.unit} (shared by all processes)`;
    const leaseUs = times.costLeaseUs(cost, amount);
    if (leaseUs > times.nowUs) latest.offer(leaseUs, { kind: "window", owner, limit: shared });
  }
  if (isHeld) latest.offer(holdUntilUs, holdOf(budget));
  const labels = policy.labels.join("+");
  if (budget.spacingUs > 0)
    latest.offer(times.spacedUs(units), { kind: "spacing", owner, limit: `even spacing of ${labels}` });
  const leaseUs = times.leaseUs(units);
  if (leaseUs > times.nowUs)
    latest.offer(leaseUs, { kind: "window", owner, limit: `${labels} (shared by all processes)` });
  return latest.constraint ?? budget.slotConstraint("max_concurrent");
}

/** Why the budget is held. While processes report what they sent before a reload, its own limits decide. */
function holdOf({ name: owner, holdUntilUs, reportedUntilUs, policy, costLogs }: Budget): Constraint {
  if (holdUntilUs > reportedUntilUs) return { kind: "cooldown", owner, limit: "cooldown" };
  const rates = [...policy.labels, ...costLogs.flatMap(({ labels }) => labels)].join("+");
  const limit = rates === "" ? `max_concurrent ${policy.maxConcurrent}` : rates;
  return { kind: "window", owner, limit: `${limit} (shared by all processes)` };
}

/** The constraint with the latest time. */
class Latest {
  constraint: Constraint | undefined;
  #us = Number.NEGATIVE_INFINITY;
  #spanUs = Number.POSITIVE_INFINITY;

  /** `spanUs` is the length of a window. */
  offer(us: number, constraint: Constraint, spanUs = Number.POSITIVE_INFINITY): void {
    const isLater = us > this.#us || (us === this.#us && spanUs < this.#spanUs);
    if (this.constraint !== undefined && !isLater) return;
    this.constraint = constraint;
    this.#us = us;
    this.#spanUs = spanUs;
  }
}
