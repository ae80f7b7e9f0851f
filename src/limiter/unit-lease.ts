/** What a lane has been given by the store that it shares with other processes. */
export class UnitLease {
  /** Given, and not yet part of a grant. */
  units = 0;
  /** Given, and neither written nor returned yet: the units, and those in grants. */
  leasedUnits = 0;
  leasedUs = 0;
  isRequesting = false;
  /** The store has nothing for this lane before. */
  notBeforeUs = 0;
  /** The budgets that the units were drawn from. */
  keys: readonly string[] = [];
  /** True once somebody else's stricter limits were told of. */
  isOverruled = false;

  get isIdle(): boolean {
    return this.leasedUnits === 0 && !this.isRequesting;
  }
}
