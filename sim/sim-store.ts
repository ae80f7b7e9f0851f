import { StoreError } from "../src/errors.ts";
import { MemoryStore } from "../src/stores/memory/memory-store.ts";
import { changeRecord, recordAt, recordsAt } from "../src/stores/records.ts";
import type { LeaseReply, LeaseRequest, Settlement, Store } from "../src/stores/store.ts";
import { sleep } from "../src/time/sleep.ts";
import type { Time, Timer } from "../src/time/time.ts";
import type { Clock } from "./clock.ts";
import type { Machine } from "./machine.ts";
import type { StorePlan } from "./plan.ts";
import type { ProcessTime } from "./process-time.ts";
import type { Random } from "./random.ts";

/** How long a silent store is waited for before it counts as away. */
const SILENCE_TIMEOUT_US = 1_000_000;

interface Exchange {
  readonly process: string;
  readonly settlements: readonly Settlement[];
  readonly asks: readonly LeaseRequest[];
}

/** Something that was done to the store, and may be done once more. */
interface StoreOperation {
  readonly atUs: number;
  readonly run: (store: MemoryStore) => unknown;
}

/** What a store can be used for: one clock, and no timers. */
class StoreTime implements Time {
  nowUs: () => number;

  constructor(nowUs: () => number) {
    this.nowUs = nowUs;
  }

  monotonicUs(): number {
    return this.nowUs();
  }

  machineUs(): number {
    return this.nowUs();
  }

  wallMs(): number {
    return Math.floor(this.nowUs() / 1000);
  }

  setTimer(): Timer {
    throw new Error("a store in memory arms no timers");
  }

  sleep(ms: number): Promise<void> {
    return sleep(this, ms);
  }
}

/**
 * The store that the processes of a world share: a memory store at the end of a line that may be slow or cut, and that
 * may be started anew, or from what it had some time ago. It remembers what was done to it and does it once more for that.
 */
export class SimStore {
  readonly #clock: Clock;
  readonly #machine: Machine;
  readonly #random: Random;
  readonly #plan: StorePlan;
  #store: MemoryStore;
  #operations: StoreOperation[] = [];
  /** What each process has out of each budget, as it knows itself. */
  readonly #out = new Map<string, { readonly process: string; readonly key: string; units: number }>();
  /** How it is away, if it is. */
  away: "refusing" | "silent" | undefined;

  /** Gives everybody all he asks for, to see whether the laws notice. */
  readonly #isGenerous: boolean;

  constructor(clock: Clock, machine: Machine, plan: StorePlan, random: Random, isGenerous = false) {
    this.#isGenerous = isGenerous;
    this.#clock = clock;
    this.#machine = machine;
    this.#plan = plan;
    this.#random = random;
    this.#store = new MemoryStore(new StoreTime(() => machine.machineUs()));
  }

  member(name: string, time: ProcessTime): Store {
    const shared = this;
    return {
      processId: name,
      get processes() {
        return Math.max(1, shared.#store.membersSeen());
      },
      exchange: (settlements, asks) =>
        shared.#roundTrip(time, () => shared.#apply({ process: name, settlements, asks })),
      read: note => shared.#roundTrip(time, () => recordAt(shared.#store.records.find(note), shared.#store.nowUs)),
      change: (note, step) =>
        shared.#roundTrip(time, () => shared.#do(store => changeRecord(store.records, note, store.nowUs, step))),
      list: prefix => shared.#roundTrip(time, () => recordsAt(shared.#store.records.list(prefix), shared.#store.nowUs)),
      close: async () => {
        if (shared.away === undefined) shared.#store.leave(name);
      },
    };
  }

  restart(): void {
    this.#operations = [];
    this.#store = new MemoryStore(new StoreTime(() => this.#machine.machineUs()));
  }

  /** What was done within so long is undone, as on a disk that was not written to in time. */
  rollBack(us: number): void {
    const keptUntilUs = this.#machine.machineUs() - us;
    this.#operations = this.#operations.filter(({ atUs }) => atUs <= keptUntilUs);
    let nowUs = 0;
    const time = new StoreTime(() => nowUs);
    this.#store = new MemoryStore(time);
    for (const { atUs, run } of this.#operations) {
      nowUs = atUs;
      run(this.#store);
    }
    time.nowUs = () => this.#machine.machineUs();
    this.#reconcile();
  }

  /** Units that somebody has out, over all budgets that these processes used. */
  pending(keys: Iterable<string>): number {
    let pending = 0;
    for (const key of keys) {
      for (const member of Object.values(this.#store.find(key)?.dump().members ?? {})) pending += member.pending;
    }
    return pending;
  }

  /** Processes tell a store that has forgotten what they still have out; the rest was written. */
  #reconcile(): void {
    for (const { process, key, units } of this.#out.values()) {
      const budget = this.#store.find(key);
      const pending = budget?.dump().members[process]?.pending ?? 0;
      if (pending > units) budget?.settle(process, pending - units, 0, this.#machine.machineUs());
    }
  }

  #note(process: string, key: string, units: number): void {
    const name = `${process} ${key}`;
    const known = this.#out.get(name) ?? { process, key, units: 0 };
    known.units = Math.max(0, known.units + units);
    this.#out.set(name, known);
  }

  /** There, done, and back again; or not. */
  #roundTrip<Value>(time: ProcessTime, run: () => Value): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const clock = this.#clock;
    const away = () => reject(new StoreError("the store of this world is away"));
    clock.at(clock.nowUs + this.#travelUs(), undefined, () => {
      if (this.away !== undefined) {
        const afterUs = this.away === "silent" ? SILENCE_TIMEOUT_US : this.#travelUs();
        clock.at(clock.nowUs + afterUs, time, away);
        return;
      }
      // Whoever died meanwhile had sent it off all the same.
      const value = run();
      clock.at(clock.nowUs + this.#travelUs(), time, () => resolve(value));
    });
    return promise;
  }

  #do<Value>(run: (store: MemoryStore) => Value): Value {
    this.#operations.push({ atUs: this.#machine.machineUs(), run });
    return run(this.#store);
  }

  #apply({ process, settlements, asks }: Exchange): readonly LeaseReply[] {
    if (this.#isGenerous) return asks.map(({ most }) => ({ kind: "granted", units: most, isStricter: false }));
    const answers = this.#do(store => store.exchange(process, settlements, asks));
    for (const { keys, written, returned } of settlements) {
      for (const key of keys) this.#note(process, key, -written - returned);
    }
    for (const [index, answer] of answers.entries()) {
      if (answer.kind !== "granted") continue;
      for (const { key } of asks[index]?.claims ?? []) this.#note(process, key, answer.units);
    }
    return answers;
  }

  #travelUs(): number {
    return this.#plan.delayMs * 1000 + this.#random.whole(0, this.#plan.jitterMs * 1000);
  }
}
