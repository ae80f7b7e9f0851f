import { type Window, WindowLog } from "../core/limits/window-log.ts";
import type { CostPolicy } from "../policy/budget-policy.ts";
import { absorbed, type SentUnits } from "./sent-history.ts";
import type { UnitLease } from "./unit-lease.ts";

/** What a budget has used of one unit other than requests, and the windows that limit it. */
export class CostLog {
  readonly unit: string;
  windows: readonly Window[];
  labels: readonly string[];
  log = new WindowLog();
  /** The amount that a role budget has leased from a shared store. Undefined without a store. */
  unitLease: UnitLease | undefined = undefined;

  constructor({ unit, windows, labels }: CostPolicy) {
    this.unit = unit;
    this.windows = windows;
    this.labels = labels;
  }

  /** Applies other limits. What was used still counts. */
  reload({ windows, labels }: Pick<CostPolicy, "windows" | "labels">): void {
    this.log.replaceWindows(this.windows, windows);
    this.windows = windows;
    this.labels = labels;
  }

  /** Counts what other budgets have used of this unit as used here too. */
  absorb(sent: readonly SentUnits[]): void {
    const ofUnit = sent.flatMap(({ costLogs }) => costLogs.filter(({ unit }) => unit === this.unit));
    if (ofUnit.length > 0) this.log = absorbed(this, ofUnit);
  }

  earliestUs(amount: number, nowUs: number): number {
    return amount === 0 ? 0 : Math.max(this.leaseUs(amount), this.log.earliestUs(this.windows, 0, amount, nowUs));
  }

  /** If a reload has added this log after the request was granted, the amount was not reserved. */
  giveBack(amount: number): void {
    this.log.giveBack(Math.min(amount, this.log.pending));
  }

  /** Writes the amount even if it was not reserved (see `giveBack`). */
  writeReserved(amount: number, nowUs: number): void {
    this.giveBack(amount);
    this.log.write(this.windows, amount, nowUs);
  }

  /** A request used `more` than it was charged, or less; `stampedUs` is undefined if it is not written yet. */
  settle(more: number, stampedUs: number | undefined, nowUs: number): void {
    if (stampedUs === undefined && more > 0) this.log.reserve(more);
    else if (stampedUs === undefined) this.giveBack(-more);
    else if (more > 0) this.log.write(this.windows, more, nowUs);
    else this.log.refund(this.windows, -more, stampedUs);
  }

  /** When the store may have the amount again; 0 if it is leased, or if no store is asked. */
  leaseUs(amount: number): number {
    return this.unitLease?.readyUs(amount) ?? 0;
  }

  isExpired(nowUs: number): boolean {
    if (this.unitLease !== undefined && (!this.unitLease.isIdle || this.unitLease.notBeforeUs > nowUs)) return false;
    return this.log.isExpired(this.windows, 0, nowUs);
  }
}

/** A budget without limits on costs has this list. */
export const NO_COST_LOGS: readonly CostLog[] = Object.freeze([]);

/**
 * The logs for other limits. With `keepsUnlimited`, a unit that is no longer limited keeps its log if it was used or
 * leased: if the limit comes back, that counts again (law L1), and requests in flight still have to settle their leases.
 */
export function reloadedCostLogs(
  logs: readonly CostLog[],
  policies: readonly CostPolicy[],
  keepsUnlimited: boolean,
): readonly CostLog[] {
  if (logs.length + policies.length === 0) return NO_COST_LOGS;
  const unlimited = logs.filter(
    ({ unit, log, unitLease }) =>
      keepsUnlimited &&
      (log.written + log.pending > 0 || unitLease !== undefined) &&
      policies.every(policy => policy.unit !== unit),
  );
  for (const log of unlimited) log.reload({ windows: [], labels: [] });
  const limited = policies.map(policy => {
    const log = logs.find(({ unit }) => unit === policy.unit) ?? new CostLog(policy);
    log.reload(policy);
    return log;
  });
  return [...limited, ...unlimited];
}
