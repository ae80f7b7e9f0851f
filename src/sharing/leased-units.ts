import type { RoleBudget } from "../limiter/role-budget.ts";
import { USE_WITHIN_US } from "../limiter/shared-use.ts";
import { UnitLease } from "../limiter/unit-lease.ts";
import { LEASE_MS } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import { Settlements } from "./settlements.ts";

/**
 * The units that this process has leased from the store, and what has to be settled: units that were written or are
 * returned. Leases are renewed well before they expire. `onWritten` and `onPending` are called when there is something to
 * settle; units that were written need not be settled at once.
 */
export class LeasedUnits {
  readonly #time: Time;
  readonly #onWritten: (roleBudget: RoleBudget) => void;
  readonly #onPending: () => void;
  readonly #onOld: (roleBudget: RoleBudget) => void;
  readonly settlements = new Settlements();
  /** Role budgets with leased units. */
  readonly #roleBudgets = new Set<RoleBudget>();
  #renewal: Timer | undefined;
  /** Fires when the first unused units are too old. */
  #aging: Timer | undefined;

  /**
   * @param onOld called with a role budget whose unused units are too old to be used, because its requests wait for
   *   something else: they are to be returned
   */
  constructor(
    time: Time,
    onWritten: (roleBudget: RoleBudget) => void,
    onPending: () => void,
    onOld: (roleBudget: RoleBudget) => void,
  ) {
    this.#time = time;
    this.#onWritten = onWritten;
    this.#onPending = onPending;
    this.#onOld = onOld;
  }

  leaseOf(roleBudget: RoleBudget): UnitLease {
    roleBudget.unitLease ??= new UnitLease();
    return roleBudget.unitLease;
  }

  /** The store has leased units of the budgets with these keys, for use after `delayUs`. */
  add(roleBudget: RoleBudget, keys: readonly string[], units: number, delayUs: number): void {
    this.leaseOf(roleBudget).add(keys, units, this.#time.monotonicUs(), delayUs);
    this.#roleBudgets.add(roleBudget);
    this.#renewal ??= this.#renewLater();
    this.#aging ??= this.#findOldIn(delayUs + USE_WITHIN_US);
  }

  /**
   * Settles leased units that were written or are returned.
   */
  settle(roleBudget: RoleBudget, written: number, returned: number): void {
    const { unitLease } = roleBudget;
    if (unitLease === undefined || unitLease.leasedUnits === 0 || written + returned === 0) return;
    this.settlements.addWritten(unitLease.end(written));
    this.settlements.addReturned(unitLease.end(returned));
    if (unitLease.leasedUnits === 0) this.#roleBudgets.delete(roleBudget);
    if (returned === 0) this.#onWritten(roleBudget);
    else this.#onPending();
  }

  /** Returns the units that are not part of a grant. */
  returnUnused(roleBudget: RoleBudget): void {
    const unitLease = this.leaseOf(roleBudget);
    const { unusedUnits } = unitLease;
    if (unusedUnits === 0) return;
    unitLease.unusedUnits = 0;
    // The returned units are free after the next exchange, so the store may be asked again before the time that it has
    // announced.
    roleBudget.storeMayHaveUnits();
    this.settle(roleBudget, 0, unusedUnits);
  }

  /** Returns the units that are not part of a grant, except those of role budgets that are kept. */
  returnAllUnused(isKept: (roleBudget: RoleBudget) => boolean = () => false): void {
    for (const roleBudget of this.#roleBudgets) if (!isKept(roleBudget)) this.returnUnused(roleBudget);
  }

  /**
   * The store may have ended the leases, or lost them. Units of grants that are not written yet count as written now if
   * it still has their leases, and when they are written they are reported as units without a lease. Otherwise their
   * settlements would end leases of later grants.
   */
  abandonLeases(): void {
    this.returnAllUnused();
    for (const { unitLease } of this.#roleBudgets)
      if (unitLease !== undefined) this.settlements.addWritten(unitLease.abandon());
    this.#roleBudgets.clear();
  }

  /** Ends the renewal, and returns all units, those of grants too. */
  close(): void {
    this.#renewal?.cancel();
    this.#aging?.cancel();
    for (const roleBudget of this.#roleBudgets) this.settle(roleBudget, 0, roleBudget.unitLease?.leasedUnits ?? 0);
  }

  #findOldIn(us: number): Timer {
    return setUnreferencedTimer(this.#time, us / 1000, () => {
      this.#aging = undefined;
      const nowUs = this.#time.monotonicUs();
      let nextUs = Number.POSITIVE_INFINITY;
      for (const roleBudget of this.#roleBudgets) {
        const { unitLease } = roleBudget;
        if (unitLease === undefined || unitLease.unusedUnits === 0) continue;
        if (unitLease.usableUntilUs <= nowUs) this.#onOld(roleBudget);
        else nextUs = Math.min(nextUs, unitLease.usableUntilUs);
      }
      if (nextUs < Number.POSITIVE_INFINITY) this.#aging = this.#findOldIn(nextUs - nowUs);
    });
  }

  /** Renews the leases well before they expire, and returns unused units. */
  #renewLater(): Timer {
    return setUnreferencedTimer(this.#time, LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const roleBudget of this.#roleBudgets) {
        const { unitLease } = roleBudget;
        if (unitLease === undefined) continue;
        this.returnUnused(roleBudget);
        for (const keys of unitLease.keys) this.settlements.addRenewal(keys);
      }
      if (this.#roleBudgets.size > 0) this.#renewal = this.#renewLater();
      this.#onPending();
    });
  }
}
