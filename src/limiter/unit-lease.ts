import { USE_WITHIN_US } from "./shared-use.ts";

/** Units that were leased from the same budgets of the store. */
export interface LeasedPart {
  /** Store keys of these budgets. */
  readonly keys: readonly string[];
  units: number;
}

/** The units that a role budget has leased from the shared store. */
export class UnitLease {
  /** Leased and not yet part of a grant. */
  unusedUnits = 0;
  /** When units were last leased, or, if they were leased ahead, when they may be used. */
  leasedUs = Number.NEGATIVE_INFINITY;
  /** When the store last replied to a request of this budget. A store that has lost the budget settles units as well. */
  contactUs = Number.NEGATIVE_INFINITY;
  /** When leased units may be used: 0 for at once, also by a call that may not wait. */
  #usableUs = 0;
  isRequesting = false;
  /** The most units that were requested for one turn, when units were last requested. */
  turnUnits = 1;
  /** The store has no units for this budget before this instant; 0 if it may have some at any time. */
  notBeforeUs = 0;
  /** When the store is worth asking before `notBeforeUs`: another process may have left its turn. 0 if it is not. */
  askUs = 0;
  /** The number of units that were requested when the store announced that instant. Fewer may be free at any time. */
  refusedUnits = 1;
  /** A call that does not wait has lacked units: until then those that the store grants are kept for the next call. */
  keptUntilUs = 0;
  /** True once `limit_overruled` was emitted for a stricter policy of another process. */
  isOverruled = false;
  /** Granted without a lease, or with one that may have ended, and neither written nor returned. */
  #unleasedUnits = 0;
  /** Leased and neither written nor returned. A reload may change the budgets: then there are several, the oldest first. */
  #parts: LeasedPart[] = [];
  #leasedUnits = 0;

  /** Leased and neither written nor returned: the unused units, and those of grants. */
  get leasedUnits(): number {
    return this.#leasedUnits;
  }

  /** When `units` can be used: leased ones, or else those that the store may have then. */
  readyUs(units: number): number {
    if (units === 0) return 0;
    if (units <= this.unusedUnits) return this.#usableUs;
    return units < this.refusedUnits ? 0 : this.notBeforeUs;
  }

  /**
   * Until when unused units may be used. If there was no reply about this budget for a while, the process may have been
   * stopped, or the store may have lost the budget. A reply about another one does not show that it still counts them.
   */
  get usableUntilUs(): number {
    return Math.max(this.leasedUs, this.contactUs) + USE_WITHIN_US;
  }

  get isIdle(): boolean {
    return this.#leasedUnits === 0 && !this.isRequesting;
  }

  /** The store has granted units of these budgets, for use after `delayUs`. */
  add(keys: readonly string[], units: number, nowUs: number, delayUs = 0): void {
    const last = this.#parts.at(-1);
    if (last !== undefined && isSame(last.keys, keys)) last.units += units;
    else this.#parts.push({ keys, units });
    this.#leasedUnits += units;
    this.unusedUnits += units;
    this.leasedUs = nowUs + delayUs;
    this.#usableUs = delayUs === 0 ? 0 : this.leasedUs;
  }

  /** A grant uses this many units: leased ones, as far as there are any. */
  charge(units: number): void {
    const leased = Math.min(units, this.unusedUnits);
    this.unusedUnits -= leased;
    this.#unleasedUnits += units - leased;
  }

  /**
   * This many units of grants were written or are returned: how many of them count as units without a lease. Those come
   * first, because the leases then count for the grants that are still to be written.
   */
  endUnleased(units: number): number {
    const ended = Math.min(units, this.#unleasedUnits);
    this.#unleasedUnits -= ended;
    return ended;
  }

  /** The store may have ended these leases: the units of grants have none any more. Returns what was leased. */
  abandon(): readonly LeasedPart[] {
    this.#unleasedUnits += this.#leasedUnits - this.unusedUnits;
    this.unusedUnits = 0;
    return this.end(this.#leasedUnits);
  }

  /** Ends the lease of this many units, or of all if there are fewer. Returns which budgets they were leased from. */
  end(units: number): readonly LeasedPart[] {
    const ended: LeasedPart[] = [];
    let left = Math.min(units, this.#leasedUnits);
    this.#leasedUnits -= left;
    for (const part of this.#parts) {
      if (left === 0) break;
      const taken = Math.min(left, part.units);
      part.units -= taken;
      left -= taken;
      ended.push({ keys: part.keys, units: taken });
    }
    this.#parts = this.#parts.filter(part => part.units > 0);
    return ended;
  }

  /** The store keys of the budgets that units are leased from, together for each part. */
  get keys(): readonly (readonly string[])[] {
    return this.#parts.map(part => part.keys);
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index]);
}
