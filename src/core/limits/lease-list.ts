import { type BudgetMember, type BudgetTables, CLEANED_AT_ONCE, type LeaseEntry } from "./budget-tables.ts";

export interface LeaseListState {
  readonly head: number;
  readonly tail: number;
  /** When the first entry is checked; -1 if there is none. */
  readonly headUs: number;
}

/** A process gets a new entry when the end of its lease has moved by at least 1/32 of the length of the lease. */
const ENTRY_PARTS = 32;

/**
 * Finds the processes whose lease has ended without checking the others. Each process has an entry in a list ordered by
 * time. A renewal of the lease adds a new entry only if the old one has become too early. An entry that is checked and is
 * not the newest one of its process is dropped.
 */
export class LeaseList {
  readonly #tables: BudgetTables;
  #head: number;
  #tail: number;
  #headUs: number;

  constructor(tables: BudgetTables, state: LeaseListState = { head: 1, tail: 1, headUs: -1 }) {
    this.#tables = tables;
    this.#head = state.head;
    this.#tail = state.tail;
    this.#headUs = state.headUs;
  }

  dump(): LeaseListState {
    return { head: this.#head, tail: this.#tail, headUs: this.#headUs };
  }

  renew(processId: string, member: BudgetMember, leaseUs: number, nowUs: number): void {
    member.leaseUs = leaseUs;
    if (member.entry === 0 || leaseUs - member.entryUs >= (leaseUs - nowUs) / ENTRY_PARTS)
      this.#append(processId, member, leaseUs);
  }

  /**
   * Calls `onEnd` with each process whose lease has ended. It returns true if the process stays a member because it has
   * a turn: then the process is checked again after `lengthUs`.
   */
  expire(nowUs: number, lengthUs: number, onEnd: (processId: string, member: BudgetMember) => boolean): void {
    for (let step = 0; step < CLEANED_AT_ONCE && this.#head < this.#tail && this.#headUs <= nowUs; step += 1) {
      const entry = this.#tables.leases.get(this.#head);
      const member = entry === undefined ? undefined : this.#tables.members.get(entry.processId);
      if (entry !== undefined && member !== undefined && member.entry === this.#head) {
        const leftUs = member.leaseUs - nowUs;
        // The lease was renewed a moment after its entry was made. It ends soon, and no lease behind it ends much
        // earlier.
        if (leftUs > 0 && leftUs <= lengthUs / ENTRY_PARTS) return;
        if (leftUs > 0 || onEnd(entry.processId, member)) this.#append(entry.processId, member, nowUs + lengthUs);
      }
      this.#tables.leases.delete(this.#head);
      this.#head += 1;
      this.#headUs = this.#head < this.#tail ? (this.#tables.leases.get(this.#head)?.checkUs ?? nowUs) : -1;
    }
  }

  #append(processId: string, member: BudgetMember, checkUs: number): void {
    const entry: LeaseEntry = { processId, checkUs };
    this.#tables.leases.set(this.#tail, entry);
    member.entry = this.#tail;
    member.entryUs = checkUs;
    if (this.#head === this.#tail) this.#headUs = checkUs;
    this.#tail += 1;
  }
}
