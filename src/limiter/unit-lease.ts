/** The units that a role budget has leased from the shared store. */
export class UnitLease {
  /** Leased and not yet part of a grant. */
  unusedUnits = 0;
  /** Leased and neither written nor returned: the unused units, and those of grants. */
  leasedUnits = 0;
  leasedUs = 0;
  isRequesting = false;
  /** The store has no units for this budget before this instant. */
  notBeforeUs = 0;
  /** Store keys of the budgets that the units were leased from. */
  keys: readonly string[] = [];
  /** True once `limit_overruled` was emitted for a stricter policy of another process. */
  isOverruled = false;

  get isIdle(): boolean {
    return this.leasedUnits === 0 && !this.isRequesting;
  }
}
