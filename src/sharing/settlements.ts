import type { LeasedPart } from "../limiter/unit-lease.ts";
import type { Settlement } from "../stores/store.ts";
import { takeFirst } from "./exchange-parts.ts";

/** What the store does not know yet about leased units: written or returned. Those of the same budgets are added up. */
export class Settlements {
  readonly #sums = new Map<string, Settlement>();

  get size(): number {
    return this.#sums.size;
  }

  add({ keys, written, returned }: Settlement): void {
    const name = keys.join("\n");
    const sum = this.#sums.get(name);
    this.#sums.set(name, {
      keys,
      written: written + (sum?.written ?? 0),
      returned: returned + (sum?.returned ?? 0),
    });
  }

  addWritten(parts: readonly LeasedPart[]): void {
    for (const { keys, units } of parts) this.add({ keys, written: units, returned: 0 });
  }

  addReturned(parts: readonly LeasedPart[]): void {
    for (const { keys, units } of parts) this.add({ keys, written: 0, returned: units });
  }

  /** A settlement of nothing renews the lease. */
  addRenewal(keys: readonly string[]): void {
    this.add({ keys, written: 0, returned: 0 });
  }

  /** Removes and returns at most `most` settlements, the oldest first. */
  take(most: number): readonly Settlement[] {
    return takeFirst(this.#sums, most).map(([, settlement]) => settlement);
  }

  /** The store could not be reached: these settlements are still to be made. */
  restore(settlements: readonly Settlement[]): void {
    for (const settlement of settlements) this.add(settlement);
  }
}
