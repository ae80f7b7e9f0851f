/**
 * The seam behind which processes share their budgets. One call does everything that has come up: what was written or
 * comes back is settled first, then each question is answered, all at one instant of the store's own clock.
 */
import type { BudgetClaim } from "../core/limits/shared-budget.ts";

/** One budget on a request's way, and what this process wants to be kept there. */
export interface StoreClaim extends BudgetClaim {
  /** Names the budget among all processes: `lane <host> <role>`, `total <name>`. */
  readonly key: string;
}

/** So many units of every budget on a way, or none of any. */
export interface Ask {
  /** From the lane outwards. */
  readonly claims: readonly StoreClaim[];
  /** Fewer than these are of no use. */
  readonly least: number;
  readonly most: number;
}

export type Answer =
  | { readonly kind: "given"; readonly units: number; readonly isStricter: boolean }
  | {
      readonly kind: "wait";
      /** From now on, by any clock; above 0. */
      readonly waitMs: number;
      /** The budget that binds. */
      readonly key: string;
      /** Somebody else's limits for a budget on this way are stricter than ours, and count. */
      readonly isStricter: boolean;
    };

/** What became of units that were given. With neither it says only that the process is alive and still has them. */
export interface Settlement {
  readonly keys: readonly string[];
  readonly written: number;
  readonly returned: number;
}

/**
 * A note that processes share: plain data under a name, such as `host api.example.org`. Instants in it are those of the
 * store's clock, and the names of their fields end in `Us`: by that they are found when the clock has started anew.
 */
export interface NoteSeen<Note> {
  /** Undefined where there is none, or it has been forgotten. */
  readonly note: Note | undefined;
  readonly nowUs: number;
}

/** What a step makes of a note. Without `note` everything stays as it is. */
export interface NoteStep<Note, Result> {
  readonly note?: { readonly next: Note; readonly keepUntilUs: number } | undefined;
  readonly result: Result;
}

/** Where processes leave word for one another: of hosts that are cut off, of slots, of themselves. */
export interface NoteStore {
  read<Note>(name: string): Promise<NoteSeen<Note>>;
  /** `step` is pure, and may run again after a lost race. */
  change<Note, Result>(name: string, step: (seen: NoteSeen<Note>) => NoteStep<Note, Result>): Promise<Result>;
  /** All notes whose names begin so, as long as there are no more than `LISTED_MAX`. */
  list<Note>(prefix: string): Promise<readonly (NoteSeen<Note> & { readonly name: string })[]>;
}

export const LISTED_MAX = 10_000;

export interface Store extends BudgetStore, NoteStore {
  /** Tells this process from the others. */
  readonly party: string;
}

export interface BudgetStore {
  /** Rejects with a StoreError when the store is away, locked or broken; then nothing was given. */
  exchange(settlements: readonly Settlement[], asks: readonly Ask[]): Promise<readonly Answer[]>;
  /** How many processes have used the store lately, this one included; 1 when nobody can know. */
  readonly processes: number;
  close(): Promise<void>;
}

/** How long a process that is not heard of keeps what it has out. Those that have something out say so in time. */
export const LEASE_MS = 30_000;
