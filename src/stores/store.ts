/**
 * The interface through which processes share budgets and records. One `exchange` carries what is pending, in parts of
 * bounded size: the store first applies the settlements, then answers the requests, all at one instant of its own clock.
 */
import type { BudgetClaim } from "../core/limits/budget-claim.ts";

/** One budget that a request passes, and the limits that this process wants to be kept there. */
export interface StoreClaim extends BudgetClaim {
  /** The name of the budget in all processes: `lane <host> <role>`, `total <name>`. */
  readonly key: string;
  /**
   * Microseconds since the store last replied about this budget with units in use. If the stored budget is younger, the
   * store has lost it, and replies `isLost`. Undefined if this process knows of no unit in use.
   */
  readonly knownAgoUs?: number | undefined;
}

/** The report of a process about a budget after it had no contact with the store, or sent requests without a lease. */
export interface UseReport {
  readonly claim: StoreClaim;
  /** The keys of a request that passes this budget, as in the claims of a `LeaseRequest`. */
  readonly keys: readonly string[];
  /** Units that the process sent without a lease and has not reported yet. */
  readonly sent: number;
  /** Microseconds since the newest unit of `sent` was written: all units of `sent` count as written then. */
  readonly sentAgoUs: number;
  /**
   * Units that the process knows were used in each window of the claim. If the store has lost this budget (see
   * `knownAgoUs` of the claim), the units that the store lacks count as written now.
   */
  readonly known: readonly number[];
  /**
   * As `known`, for a store that may lack only the last changes of this budget, such as a replica that lags behind. For
   * long windows it is the use of the last reply, without units that other processes may have used since.
   * @default known
   */
  readonly lastReplied?: readonly number[] | undefined;
}

/** Asks for units of every claimed budget. The store grants the same number in each, or none in any (law L3). */
export interface LeaseRequest {
  /** The budget of the role first, then the budgets above it. */
  readonly claims: readonly StoreClaim[];
  /** The smallest number of units that is of use. */
  readonly least: number;
  /** The largest number of units that is of use. */
  readonly most: number;
  /**
   * Units that become free within this time may be leased now, and used as soon as they are free. So the round trip to
   * the store does not delay the process. If no other process has units in a window, the store grants such units
   * without a delay: the log of the process itself applies the window. @default 0
   */
  readonly aheadMs?: number | undefined;
  /** Whether the reply is to contain `use`. @default false */
  readonly wantsUse?: boolean | undefined;
}

/** Units that count now in each window of each claim, leased ones included. */
export type ClaimUse = readonly (readonly number[])[];

export type LeaseReply =
  | {
      readonly kind: "granted";
      /** From `least` to `most`. */
      readonly units: number;
      /** Milliseconds from the reply until the units may be used; only with `aheadMs`. @default 0 */
      readonly delayMs?: number | undefined;
      /** Only with fewer units than `most`: milliseconds from the reply until more units can be expected. */
      readonly nextMs?: number | undefined;
      /**
       * Only with `aheadMs`: no other process uses or waits for units of these budgets, so that the process may request
       * more at any time.
       */
      readonly isOnlyUser?: true | undefined;
      /** Another process has claimed stricter limits for one of these budgets, and the stricter limits apply. */
      readonly isStricter: boolean;
      readonly use?: ClaimUse | undefined;
    }
  | {
      readonly kind: "wait";
      /**
       * Milliseconds from the reply until `least` units can be expected; above 0. Exact unless other processes are
       * queued before this one. A duration, so that clocks may differ.
       */
      readonly waitMs: number;
      /** The budget that has too few units. */
      readonly key: string;
      /** Another process has claimed stricter limits for one of these budgets, and the stricter limits apply. */
      readonly isStricter: boolean;
      readonly use?: ClaimUse | undefined;
      /** The store has lost one of these budgets: its units in use are not known any more. */
      readonly isLost?: true | undefined;
    };

/** Reports the leased units that were used (`written`) or not needed (`returned`). 0 and 0 only renews the lease. */
export interface Settlement {
  readonly keys: readonly string[];
  readonly written: number;
  readonly returned: number;
}

/**
 * A record that processes share: plain data under a name, such as `host api.example.org`. Instants in it are readings
 * of the store's clock, and the names of their fields end in `Us`. After a restart of the machine, all fields with such
 * names are shifted.
 */
export interface StoreRecord<Value> {
  /** Undefined when there is no record of that name, or it has expired. */
  readonly record: Value | undefined;
  readonly nowUs: number;
}

/** The result of a step. Without `record` the stored record does not change. */
export interface RecordUpdate<Value, Result> {
  readonly record?: { readonly next: Value; readonly keepUntilUs: number } | undefined;
  readonly result: Result;
}

/** Records about hosts and resolvers (circuits, cooldowns), concurrency slots, and running processes. */
export interface RecordStore extends RecordReader {
  /** Replaces a record atomically. `step` must be pure: it runs again when another process was faster. */
  change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result>;
}

/** Reads records. Needs no lock and no right to write. */
export interface RecordReader {
  read<Value>(name: string): Promise<StoreRecord<Value>>;
  /** The records whose names begin with `prefix`, at most `LISTED_MAX` of them. */
  list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]>;
}

export const LISTED_MAX = 10_000;

export interface Store extends BudgetStore, RecordStore {
  /** Unique among all processes that share the store. */
  readonly processId: string;
  /** Undefined if the store cannot notify its processes. */
  readonly signals?: StoreSignals | undefined;
}

/** `orders`: an operator has given an order. `acks`: a process has applied one. */
export type SignalTopic = "orders" | "acks";

/** Notifications between the processes of a store. They carry no data: a listener reads the records again. */
export interface StoreSignals {
  send(topic: SignalTopic): Promise<void>;
  /** Calls `listener` after each `send` of any process, and whenever one may have been missed. */
  listen(topic: SignalTopic, listener: () => void): SignalSubscription;
}

/** A subscription does not keep the program alive (law S8). */
export interface SignalSubscription {
  /** False if the notifications cannot be received, or not yet: then the records must be read from time to time. */
  readonly isActive: boolean;
  stop(): void;
}

export interface BudgetStore {
  /**
   * Rejects with a StoreError when the store is unreachable, locked or damaged; then no unit was granted.
   * @param dead ids of processes that have ended. In the budgets of requests and reports their leased units count as
   * written now, and their claims and turns end. @default none
   */
  exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports?: readonly UseReport[],
    dead?: readonly string[],
  ): Promise<readonly LeaseReply[]>;
  /** How many processes have used the store within a lease, this one included; 1 when that is unknown. */
  readonly processes: number;
  close(): Promise<void>;
}

/** How long a silent process keeps its leased units. A process that has leased units contacts the store before that. */
export const LEASE_MS = 30_000;
