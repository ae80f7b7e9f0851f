/**
 * What a shared budget keeps for each process. An exchange reads and writes the entries of its own process and a few
 * others, so its cost does not depend on the number of processes (law S7).
 */

/** The state of one process in a budget. A member that was read may be changed in place. */
export interface BudgetMember {
  /** Its limits, as `claimText` writes them. */
  claim: string;
  /** Leased units, neither written nor returned yet. */
  pending: number;
  /** If the process has not contacted the store by then, its leased units count as written at this instant. */
  leaseUs: number;
  /** The number of its newest entry in the list of leases; 0 for none. */
  entry: number;
  /** When that entry is checked. */
  entryUs: number;
  /** Its place in the queue. Undefined if it does not wait for units. */
  turn?: Turn | undefined;
}

/** A place in the queue of the processes that wait for units. */
export interface Turn {
  readonly number: number;
  /** Sum of the units that were promised to all earlier turns, since the queue was created. */
  readonly start: number;
  /** When the process is due to ask again. */
  dueUs: number;
}

/** An entry of the list of leases: when the lease of a process is checked. */
export interface LeaseEntry {
  readonly processId: string;
  readonly checkUs: number;
}

export interface Table<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
  delete(key: Key): unknown;
}

export interface BudgetTables {
  readonly members: Table<string, BudgetMember>;
  /** The process of each turn. */
  readonly turns: Table<number, string>;
  readonly leases: Table<number, LeaseEntry>;
}

export function emptyTables(): BudgetTables {
  return { members: new Map(), turns: new Map(), leases: new Map() };
}

/** An exchange cleans up at most this many old entries, so that no exchange is slow. */
export const CLEANED_AT_ONCE = 16;
