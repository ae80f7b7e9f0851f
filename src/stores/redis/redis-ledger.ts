/**
 * The units that this process has leased from each budget. If a call is lost, it is unknown whether the server granted
 * its units and applied its settlements. The next call then reports the leased units, and the server counts the
 * difference as written now. The same report restores the leased units on a server that was restarted without data.
 */
export class RedisLedger {
  readonly #leased = new Map<string, number>();
  /** Since when, the oldest first. */
  readonly #uncertain = new Map<string, number>();
  /** Grows with each lost call. The server ignores a late call of an older epoch. */
  epoch = 0;

  recordGrant(keys: Iterable<string>, units: number): void {
    for (const key of keys) this.#leased.set(key, this.#leasedOf(key) + units);
  }

  recordSettlement(key: string, units: number): void {
    const left = this.#leasedOf(key) - units;
    if (left > 0) this.#leased.set(key, left);
    else this.#leased.delete(key);
  }

  /** The leased units of these budgets, and of every budget with leased units, must be reported to the server again. */
  markUncertain(keys: Iterable<string>, nowUs: number): void {
    this.epoch += 1;
    for (const key of [...keys, ...this.#leased.keys()]) {
      // Deleted first, so that the map is in the order of time.
      this.#uncertain.delete(key);
      this.#uncertain.set(key, nowUs);
    }
  }

  get isUncertain(): boolean {
    return this.#uncertain.size > 0;
  }

  /** The server knows the leased units of this budget again. */
  confirm(key: string): void {
    this.#uncertain.delete(key);
  }

  /**
   * The server has settled units of this budget. A server that has lost its data does not restore leased units with a
   * settlement, so if some are left they must still be reported.
   */
  confirmSettled(key: string): void {
    if (!this.#leased.has(key)) this.#uncertain.delete(key);
  }

  /**
   * Forgets budgets that are uncertain since before `beforeUs` and have no leased units: their lease on the server has
   * ended.
   */
  forget(beforeUs: number): void {
    for (const [key, sinceUs] of this.#uncertain) {
      if (sinceUs >= beforeUs) return;
      if (!this.#leased.has(key)) this.#uncertain.delete(key);
    }
  }

  /** The leased units to report, less the `settledUnits` of the same call; -1 if the server knows them. */
  unitsToReport(key: string, settledUnits: number): number {
    return this.#uncertain.has(key) ? Math.max(0, this.#leasedOf(key) - settledUnits) : -1;
  }

  #leasedOf(key: string): number {
    return this.#leased.get(key) ?? 0;
  }
}
