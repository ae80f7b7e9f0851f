import type { Settlement } from "../store.ts";
import { type Amounts, sumsOf } from "./exchange-call.ts";

const NOTHING: Amounts = { written: 0, returned: 0 };

/**
 * What the store has and the callers do not know, because a reply was lost. It changes only when it is known whether an
 * exchange took effect, so any number of replies may be lost in a row.
 */
export class PostgresLedger {
  /** Settlements that the store has applied although their callers got no reply: the callers repeat them. */
  readonly #applied = new Map<string, Amounts>();
  /** Units that the store has granted although no caller got them. */
  readonly #lostUnits = new Map<string, number>();

  /** What the store must get: without the units that it has applied, and with the units that no caller got. */
  corrected(settlements: readonly Settlement[]): readonly Settlement[] {
    const corrected: Settlement[] = [];
    for (const [key, { written, returned }] of sumsOf(settlements)) {
      const applied = this.#applied.get(key) ?? NOTHING;
      corrected.push({
        keys: [key],
        written: Math.max(0, written - applied.written),
        returned: Math.max(0, returned - applied.returned),
      });
    }
    for (const [key, units] of this.#lostUnits) corrected.push({ keys: [key], written: 0, returned: units });
    return corrected;
  }

  /** The store has applied what `corrected` has returned for these settlements, and their callers know it. */
  acknowledged(settlements: readonly Settlement[]): void {
    this.#lostUnits.clear();
    for (const [key, { written, returned }] of sumsOf(settlements)) {
      const applied = this.#applied.get(key) ?? NOTHING;
      const rest = {
        written: Math.max(0, applied.written - written),
        returned: Math.max(0, applied.returned - returned),
      };
      if (rest.written + rest.returned > 0) this.#applied.set(key, rest);
      else this.#applied.delete(key);
    }
  }

  /**
   * The store has applied what `corrected` has returned for these settlements, but their callers got no reply.
   * @param grants the units that the same exchange has granted
   */
  unacknowledged(
    settlements: readonly Settlement[],
    grants: readonly { readonly keys: readonly string[]; readonly units: number }[],
  ): void {
    this.#lostUnits.clear();
    for (const { keys, units } of grants)
      for (const key of keys) this.#lostUnits.set(key, (this.#lostUnits.get(key) ?? 0) + units);
    for (const [key, { written, returned }] of sumsOf(settlements)) {
      if (written + returned === 0) continue;
      const applied = this.#applied.get(key) ?? NOTHING;
      this.#applied.set(key, {
        written: Math.max(applied.written, written),
        returned: Math.max(applied.returned, returned),
      });
    }
  }
}
