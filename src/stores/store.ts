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
export interface LeaseRequest {
  /** From the lane outwards. */
  readonly claims: readonly StoreClaim[];
  /** Fewer than these are of no use. */
  readonly least: number;
  readonly most: number;
}

export type LeaseReply =
  | { readonly kind: "granted"; readonly units: number; readonly isStricter: boolean }
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
export interface StoreRecord<Value> {
  /** Undefined where there is none, or it has been forgotten. */
  readonly record: Value | undefined;
  readonly nowUs: number;
}

/** What a step makes of a note. Without `note` everything stays as it is. */
export interface RecordUpdate<Value, Result> {
  readonly record?: { readonly next: Value; readonly keepUntilUs: number } | undefined;
  readonly result: Result;
}

/** Where processes leave word for one another: of hosts that are cut off, of slots, of themselves. */
export interface RecordStore {
  read<Value>(name: string): Promise<StoreRecord<Value>>;
  /** `step` is pure, and may run again after a lost race. */
  change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result>;
  /** All notes whose names begin so, as long as there are no more than `LISTED_MAX`. */
  list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]>;
}

export const LISTED_MAX = 10_000;

export interface Store extends BudgetStore, RecordStore {
  /** Tells this process from the others. */
  readonly processId: string;
}

export interface BudgetStore {
  /** Rejects with a StoreError when the store is away, locked or broken; then nothing was given. */
  exchange(settlements: readonly Settlement[], requests: readonly LeaseRequest[]): Promise<readonly LeaseReply[]>;
  /** How many processes have used the store lately, this one included; 1 when nobody can know. */
  readonly processes: number;
  close(): Promise<void>;
}

/** How long a process that is not heard of keeps what it has out. Those that have something out say so in time. */
export const LEASE_MS = 30_000;
