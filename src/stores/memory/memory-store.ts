import { SharedBudget } from "../../core/limits/shared-budget.ts";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { answerAll, type Budgets, settleAll } from "../exchange.ts";
import { changeNote, type KeptNote, type Notes, seenAll, seenAt } from "../records.ts";
import {
  type Answer,
  type Ask,
  LEASE_MS,
  LISTED_MAX,
  type NoteSeen,
  type NoteStep,
  type Settlement,
  type Store,
} from "../store.ts";

export interface MemoryStoreOptions {
  /** How long a member that is not heard of keeps what it has out. @default LEASE_MS */
  readonly leaseMs?: number;
}

/** With each exchange so many budgets are looked at, whether they may be forgotten. */
const SWEPT_AT_ONCE = 2;

/** What several hubs of one process share; each is a member of its own. */
export class MemoryStore implements Budgets {
  readonly #time: Time;
  readonly #leaseUs: number;
  readonly #budgets = new Map<string, SharedBudget>();
  readonly #notes = new MemoryNotes();
  readonly #seenUs = new Map<string, number>();
  #sweep = this.#budgets.entries();

  constructor(time: Time, { leaseMs = LEASE_MS }: MemoryStoreOptions = {}) {
    this.#time = time;
    this.#leaseUs = leaseMs * 1000;
  }

  /** The store as one member sees it. Members are told apart by their names. */
  member(name: string): Store {
    return new MemoryMember(this, name);
  }

  find(key: string): SharedBudget | undefined {
    return this.#budgets.get(key);
  }

  open(key: string): SharedBudget {
    const known = this.#budgets.get(key);
    if (known !== undefined) return known;
    const budget = new SharedBudget();
    this.#budgets.set(key, budget);
    return budget;
  }

  /** How many budgets are remembered. */
  get size(): number {
    return this.#budgets.size;
  }

  /** Members that were heard of within a lease. */
  membersSeen(): number {
    const sinceUs = this.#time.machineUs() - this.#leaseUs;
    for (const [name, seenUs] of this.#seenUs) if (seenUs <= sinceUs) this.#seenUs.delete(name);
    return this.#seenUs.size;
  }

  exchange(process: string, settlements: readonly Settlement[], asks: readonly Ask[]): readonly Answer[] {
    const contact = { process, nowUs: this.#time.machineUs(), leaseUs: this.#leaseUs };
    this.#seenUs.set(process, contact.nowUs);
    settleAll(this, settlements, contact);
    const answers = answerAll(this, asks, contact);
    this.#forgetSpent(contact.nowUs);
    return answers;
  }

  get notes(): MemoryNotes {
    return this.#notes;
  }

  get nowUs(): number {
    return this.#time.machineUs();
  }

  /** A member that has said goodbye is no longer counted. What it had out stays until its lease is over. */
  leave(process: string): void {
    this.#seenUs.delete(process);
  }

  #forgetSpent(nowUs: number): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept += 1) {
      const { done, value } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#budgets.entries();
        return;
      }
      const [key, budget] = value;
      if (budget.isSpent(nowUs)) this.#budgets.delete(key);
    }
  }
}

class MemoryNotes implements Notes {
  readonly #notes = new Map<string, KeptNote>();
  #sweep = this.#notes.entries();

  find(name: string): KeptNote | undefined {
    return this.#notes.get(name);
  }

  keep(name: string, note: KeptNote): void {
    this.#notes.set(name, note);
  }

  list(prefix: string): readonly (KeptNote & { readonly name: string })[] {
    const found: (KeptNote & { readonly name: string })[] = [];
    for (const [name, kept] of this.#notes) {
      if (name.startsWith(prefix) && found.length < LISTED_MAX) found.push({ name, ...kept });
    }
    return found;
  }

  forgetSome(nowUs: number): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept += 1) {
      const { done, value } = this.#sweep.next();
      if (done) {
        this.#sweep = this.#notes.entries();
        return;
      }
      const [name, { keepUntilUs }] = value;
      if (keepUntilUs <= nowUs) this.#notes.delete(name);
    }
  }
}

class MemoryMember implements Store {
  readonly party: string;
  readonly #store: MemoryStore;
  #isClosed = false;

  constructor(store: MemoryStore, party: string) {
    this.#store = store;
    this.party = party;
  }

  get processes(): number {
    return Math.max(1, this.#store.membersSeen());
  }

  async exchange(settlements: readonly Settlement[], asks: readonly Ask[]): Promise<readonly Answer[]> {
    this.#checkOpen();
    return this.#store.exchange(this.party, settlements, asks);
  }

  async read<Note>(name: string): Promise<NoteSeen<Note>> {
    this.#checkOpen();
    return seenAt(this.#store.notes.find(name), this.#store.nowUs);
  }

  async change<Note, Result>(name: string, step: (seen: NoteSeen<Note>) => NoteStep<Note, Result>): Promise<Result> {
    this.#checkOpen();
    const { notes, nowUs } = this.#store;
    const result = changeNote(notes, name, nowUs, step);
    notes.forgetSome(nowUs);
    return result;
  }

  async list<Note>(prefix: string): Promise<readonly (NoteSeen<Note> & { readonly name: string })[]> {
    this.#checkOpen();
    return seenAll(this.#store.notes.list(prefix), this.#store.nowUs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#store.leave(this.party);
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StoreError("the store is closed");
  }
}
