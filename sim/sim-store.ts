import { StoreError } from "../src/errors.ts";
import { MemoryStore } from "../src/stores/memory/memory-store.ts";
import { changeRecord, recordAt, recordsAt } from "../src/stores/records.ts";
import type {
  LeaseReply,
  LeaseRequest,
  RecordUpdate,
  Settlement,
  Store,
  StoreRecord,
  UseReport,
} from "../src/stores/store.ts";
import type { Clock } from "./clock.ts";
import type { Machine } from "./machine.ts";
import type { StorePlan } from "./plan.ts";
import type { ProcessTime } from "./process-time.ts";
import type { Random } from "./random.ts";
import { StoreTime } from "./store-time.ts";

/** How long a process waits for a silent store before the store counts as away. */
const SILENCE_TIMEOUT_US = 1_000_000;

interface Exchange {
  readonly process: string;
  readonly settlements: readonly Settlement[];
  readonly requests: readonly LeaseRequest[];
  readonly reports: readonly UseReport[];
}

/** A recorded operation, for replay after a loss of data. */
interface StoreOperation {
  readonly atUs: number;
  readonly run: (store: MemoryStore) => unknown;
}

/**
 * The store that the processes share: a memory store behind a connection that may be slow or broken. It may restart
 * empty, or lose its latest operations; for that it records all operations and replays the older ones.
 */
export class SimStore {
  readonly #clock: Clock;
  readonly #machine: Machine;
  readonly #random: Random;
  readonly #plan: StorePlan;
  #store: MemoryStore;
  #operations: StoreOperation[] = [];
  /** Units that each process has leased from each budget, by its own count. */
  readonly #leased = new Map<string, { readonly process: string; readonly key: string; units: number }>();
  /** How the store fails, if it does: with an error, or without any reply. */
  away: "refusing" | "silent" | undefined;

  /** Grants every request in full, to test that a law detects it. */
  readonly #isGenerous: boolean;

  constructor(clock: Clock, machine: Machine, plan: StorePlan, random: Random, isGenerous = false) {
    this.#isGenerous = isGenerous;
    this.#clock = clock;
    this.#machine = machine;
    this.#plan = plan;
    this.#random = random;
    this.#store = new MemoryStore(new StoreTime(() => machine.machineUs()));
  }

  member(processId: string, time: ProcessTime): Store {
    const shared = this;
    return {
      processId,
      get processes() {
        return Math.max(1, shared.#store.membersSeen());
      },
      exchange: (settlements, requests, reports = []) =>
        shared.#roundTrip(time, () => shared.#apply({ process: processId, settlements, requests, reports })),
      read: name => shared.#roundTrip(time, () => recordAt(shared.#store.records.find(name), shared.#store.nowUs)),
      change: (name, step) => shared.#roundTrip(time, () => shared.#change(name, step)),
      list: prefix => shared.#roundTrip(time, () => recordsAt(shared.#store.records.list(prefix), shared.#store.nowUs)),
      close: async () => {
        if (shared.away === undefined) shared.#store.leave(processId);
      },
    };
  }

  restart(): void {
    this.#operations = [];
    this.#store = new MemoryStore(new StoreTime(() => this.#machine.machineUs()));
  }

  /** Loses the operations of the last `us` microseconds, as after a crash before a write to disk. */
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

  /** Leased units of all processes in these budgets. */
  pending(keys: Iterable<string>): number {
    let pending = 0;
    for (const key of keys) pending += this.#store.find(key)?.dump().log.pending ?? 0;
    return pending;
  }

  /** After a loss of data each process reports its leased units; the rest counts as written. */
  #reconcile(): void {
    for (const { process, key, units } of this.#leased.values()) {
      const budget = this.#store.find(key);
      const pending = budget?.pendingOf(process) ?? 0;
      if (pending > units) budget?.settle(process, pending - units, 0, this.#machine.machineUs());
    }
  }

  #addLeased(process: string, key: string, units: number): void {
    const name = `${process} ${key}`;
    const known = this.#leased.get(name) ?? { process, key, units: 0 };
    known.units = Math.max(0, known.units + units);
    this.#leased.set(name, known);
  }

  /** Sends a request to the store, runs it there and sends the reply back, unless the store is away. */
  #roundTrip<Value>(time: ProcessTime, run: () => Value): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const clock = this.#clock;
    const away = () => reject(new StoreError("the simulated store is away"));
    clock.at(clock.nowUs + this.#travelUs(), undefined, () => {
      if (this.away !== undefined) {
        const afterUs = this.away === "silent" ? SILENCE_TIMEOUT_US : this.#travelUs();
        clock.at(clock.nowUs + afterUs, time, away);
        return;
      }
      // Runs even if the process has died meanwhile, because the request was already sent.
      const value = run();
      clock.at(clock.nowUs + this.#travelUs(), time, () => resolve(value));
    });
    return promise;
  }

  #perform<Value>(run: (store: MemoryStore) => Value): Value {
    this.#operations.push({ atUs: this.#machine.machineUs(), run });
    return run(this.#store);
  }

  /** A replay puts the same record again. A step of a process never runs later: the process has ended its write. */
  #change<Value, Result>(name: string, step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>): Result {
    let update: RecordUpdate<Value, Result> | undefined;
    return this.#perform(({ records, nowUs }) =>
      changeRecord<Value, Result>(records, name, nowUs, current => {
        update ??= step(current);
        return update;
      }),
    );
  }

  #apply({ process, settlements, requests, reports }: Exchange): readonly LeaseReply[] {
    if (this.#isGenerous) return requests.map(({ most }) => ({ kind: "granted", units: most, isStricter: false }));
    const answers = this.#perform(store => store.exchange(process, settlements, requests, reports));
    for (const { keys, written, returned } of settlements) {
      for (const key of keys) this.#addLeased(process, key, -written - returned);
    }
    for (const [index, answer] of answers.entries()) {
      if (answer.kind !== "granted") continue;
      for (const { key } of requests[index]?.claims ?? []) this.#addLeased(process, key, answer.units);
    }
    return answers;
  }

  #travelUs(): number {
    return this.#plan.delayMs * 1000 + this.#random.whole(0, this.#plan.jitterMs * 1000);
  }
}
