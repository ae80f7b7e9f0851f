import { randomUUID } from "node:crypto";
import { StoreError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import {
  type Answer,
  type Ask,
  LEASE_MS,
  type NoteSeen,
  type NoteStep,
  type Settlement,
  type Store,
} from "../store.ts";
import { questionOf, type RedisBatch } from "./redis-batch.ts";
import { RedisLine } from "./redis-call-queue.ts";
import { isHopeless, RedisConnection } from "./redis-connection.ts";
import { RedisKeys } from "./redis-keys.ts";
import { RedisLedger } from "./redis-ledger.ts";
import { RedisNotes } from "./redis-records.ts";
import { RedisMirror } from "./redis-refusal-cache.ts";
import { SCRIPT, SCRIPT_SHA } from "./redis-script.ts";
import { answersOf, type Call, type Caller, callOf, presenceOf, readReply } from "./script-call.ts";

export interface RedisStoreOptions {
  /** What all keys begin with. Processes share budgets when they use the same. @default "docstokg" */
  readonly prefix?: string;
  /** How long a process that is not heard of keeps what it has out. @default LEASE_MS */
  readonly leaseMs?: number;
  /** How long an answer may take before the store counts as away. @default 1000 */
  readonly timeoutMs?: number;
  /** The server is one of a cluster: the budgets of one way lie in one slot. @default false */
  readonly cluster?: boolean;
  /** Told once when the server goes away, and again only after it was back. */
  readonly onTrouble?: (error: StoreError) => void;
  /** For how long a refusal is repeated from memory; 0 to ask the server each time. @default 50 */
  readonly trustMs?: number;
  readonly time?: Time;
  /** In place of the server's clock. For tests alone. */
  readonly serverUs?: () => number;
}

const BUDGETS = { text: SCRIPT, sha: SCRIPT_SHA };
/** Who uses the store says so once a second at the most. */
const PRESENCE_US = 1_000_000;

/**
 * Budgets and notes on a redis server. The server's clock decides, and one script does everything, so it does not matter how far
 * apart the clocks of the processes are.
 *
 * A server that was started anew without its data has forgotten what was written: windows start anew, but for what the
 * processes still have out, which they tell it again. Whoever cannot have that lets redis write to its disk.
 */
export class RedisStore implements Store {
  readonly #connection: RedisConnection;
  readonly party: string = randomUUID();
  readonly #notes: RedisNotes;
  readonly #keys: RedisKeys;
  readonly #leaseUs: number;
  readonly #timeoutUs: number;
  readonly #time: Time;
  readonly #serverUs: (() => number) | undefined;
  readonly #onTrouble: (error: StoreError) => void;
  readonly #ledger: RedisLedger;
  readonly #mirror: RedisMirror;
  readonly #lines = new Map<string, RedisLine>();
  #processes = 1;
  #signedUs = Number.NEGATIVE_INFINITY;
  #isTroubled = false;
  #isClosed = false;

  /**
   * Rejects with a StoreError when the driver is missing, the URL is none or the server does not let us in. A server
   * that is away is none of these: each exchange fails until it is there (law S4).
   */
  static async open(url: string, options: RedisStoreOptions = {}): Promise<RedisStore> {
    const { timeoutMs = 1000, cluster = false, time = systemTime, trustMs = 50 } = options;
    const ledger = new RedisLedger();
    const mirror = new RedisMirror(trustMs * 1000);
    const onLost = () => {
      ledger.doubt([], time.monotonicUs());
      mirror.clear();
    };
    const connection = new RedisConnection(url, { isCluster: cluster, timeoutMs, time, onLost });
    const store = new RedisStore(connection, ledger, mirror, options);
    try {
      await store.#sign(store.#leaseUs);
    } catch (error) {
      if (error instanceof StoreError && isHopeless(error)) {
        connection.close();
        throw error;
      }
      store.#told(error);
    }
    return store;
  }

  private constructor(
    connection: RedisConnection,
    ledger: RedisLedger,
    mirror: RedisMirror,
    options: RedisStoreOptions,
  ) {
    const { prefix = "docstokg", leaseMs = LEASE_MS, timeoutMs = 1000, cluster = false } = options;
    this.#connection = connection;
    this.#ledger = ledger;
    this.#mirror = mirror;
    this.#keys = new RedisKeys(prefix, cluster);
    this.#leaseUs = leaseMs * 1000;
    this.#timeoutUs = timeoutMs * 1000;
    this.#time = options.time ?? systemTime;
    this.#serverUs = options.serverUs;
    this.#notes = new RedisNotes(connection, prefix, options.serverUs);
    this.#onTrouble = options.onTrouble ?? (() => undefined);
  }

  get processes(): number {
    return this.#processes;
  }

  async exchange(settlements: readonly Settlement[], asks: readonly Ask[]): Promise<readonly Answer[]> {
    if (this.#isClosed) throw new StoreError("the store is closed");
    const answers: Answer[] = [];
    const batches = new Set<RedisBatch>();
    for (const settlement of settlements) {
      if (settlement.keys.length === 0) continue;
      const batch = this.#lineOf(settlement.keys).open();
      batch.settle(settlement);
      batches.add(batch);
      if (settlement.returned > 0) this.#mirror.clear();
    }
    const nowUs = this.#time.monotonicUs();
    for (const [index, ask] of asks.entries()) {
      const question = questionOf(ask);
      const known = ask.claims.length === 0 ? unlimited(ask) : this.#mirror.answer(question, nowUs);
      if (known !== undefined) {
        answers[index] = known;
        continue;
      }
      const batch = this.#lineOf(ask.claims.map(({ key }) => key)).open();
      batch.ask(question, ask, answer => {
        answers[index] = answer;
      });
      batches.add(batch);
    }
    // Nothing to say is said too: whoever was told that the server is away asks whether it is back.
    if (settlements.length + asks.length === 0)
      await this.#sign(this.#leaseUs).catch(error => Promise.reject(this.#told(error)));
    else if (nowUs - this.#signedUs >= PRESENCE_US) void this.#sign(this.#leaseUs).catch(() => undefined);
    if (batches.size > 0) await this.#all(batches, asks, answers);
    return answers;
  }

  read<Note>(name: string): Promise<NoteSeen<Note>> {
    return this.#noting(() => this.#notes.read(name));
  }

  change<Note, Result>(name: string, step: (seen: NoteSeen<Note>) => NoteStep<Note, Result>): Promise<Result> {
    return this.#noting(() => this.#notes.change(name, step));
  }

  list<Note>(prefix: string): Promise<readonly (NoteSeen<Note> & { readonly name: string })[]> {
    return this.#noting(() => this.#notes.list(prefix));
  }

  async #noting<Value>(act: () => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new StoreError("the store is closed");
    return act().catch(error => Promise.reject(this.#told(error)));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all(Array.from(this.#lines.values(), line => line.idle()));
    // A server that is away finds out when the lease is over.
    await this.#sign(0).catch(() => undefined);
    this.#connection.close();
  }

  async #all(batches: ReadonlySet<RedisBatch>, asks: readonly Ask[], answers: readonly Answer[]): Promise<void> {
    const [first] = batches;
    if (batches.size === 1) return first?.done;
    const outcomes = await Promise.allSettled(Array.from(batches, batch => batch.done));
    const failed = outcomes.find(outcome => outcome.status === "rejected");
    if (failed === undefined) return;
    // Several slots of a cluster, and one failed: what the others gave goes to nobody, and counts as written.
    for (const [index, { claims }] of asks.entries()) {
      const answer = answers[index];
      if (answer?.kind !== "given") continue;
      for (const { key } of claims) this.#ledger.settled(key, answer.units);
      this.#ledger.doubt(
        claims.map(({ key }) => key),
        this.#time.monotonicUs(),
      );
    }
    throw failed.reason;
  }

  #lineOf(way: readonly string[]): RedisLine {
    const slot = this.#keys.slotOf(way);
    const known = this.#lines.get(slot);
    if (known !== undefined) return known;
    const line: RedisLine = new RedisLine({
      run: batch => this.#run(batch, slot, line),
      isInDoubt: () => this.#ledger.isInDoubt,
    });
    this.#lines.set(slot, line);
    return line;
  }

  async #run(batch: RedisBatch, slot: string, line: RedisLine): Promise<void> {
    const { epoch } = this.#ledger;
    try {
      const rest = await this.#call(line, caller =>
        callOf(batch, this.#ledger, caller, key => this.#keys.keyOf(key, slot)),
      );
      this.#heed(batch, answersOf(batch, rest), epoch);
      this.#isTroubled = false;
    } catch (error) {
      const nowUs = this.#time.monotonicUs();
      this.#ledger.forget(nowUs - this.#leaseUs);
      this.#ledger.doubt(batch.keys(), nowUs);
      this.#mirror.clear();
      throw this.#told(error);
    }
  }

  #heed(batch: RedisBatch, answers: readonly (readonly Answer[])[], epoch: number): void {
    const nowUs = this.#time.monotonicUs();
    for (const [key, { written, returned }] of batch.settlements) this.#ledger.settled(key, written + returned);
    let index = 0;
    for (const [question, { ask, hear }] of batch.questions) {
      const own = answers[index] ?? [];
      const keys = ask.claims.map(({ key }) => key);
      // In between the connection may have broken: then the server has to be told again.
      if (epoch === this.#ledger.epoch) for (const key of keys) this.#ledger.trust(key);
      for (const [caller, answer] of own.entries()) {
        if (answer.kind === "given") this.#ledger.given(keys, answer.units);
        hear[caller]?.(answer);
      }
      const last = own.at(-1);
      if (last !== undefined) this.#mirror.note(question, last, nowUs);
      index += 1;
    }
  }

  /** Asked again when it came too late: that is known to have done nothing, and tells what the server's clock says. */
  async #call(line: RedisLine, callFor: (caller: Caller) => Call): Promise<readonly number[]> {
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const notAfterUs = line.serverUs(this.#time.monotonicUs(), this.#timeoutUs);
      const caller = { process: this.party, leaseUs: this.#leaseUs, notAfterUs, timeUs: this.#serverUs?.() };
      const { serverUs, rest } = readReply(await this.#connection.call(callFor(caller), BUDGETS));
      line.heard(serverUs, this.#time.monotonicUs());
      if (rest !== undefined) return rest;
    }
    throw new StoreError("redis answered too late, and gave nothing");
  }

  /** Says that this process uses the store, and hears how many do; with a lease of 0 it says goodbye. */
  async #sign(leaseUs: number): Promise<void> {
    this.#signedUs = this.#time.monotonicUs();
    const caller = { process: this.party, leaseUs, notAfterUs: 0, timeUs: this.#serverUs?.() };
    const { rest } = readReply(await this.#connection.call(presenceOf(caller, this.#keys.presence), BUDGETS));
    this.#processes = Math.max(1, rest?.[0] ?? 1);
    this.#isTroubled = false;
  }

  #told(error: unknown): StoreError {
    const told = error instanceof StoreError ? error : new StoreError("redis answered nonsense", { cause: error });
    if (!this.#isTroubled && !this.#isClosed) this.#onTrouble(told);
    this.#isTroubled = true;
    return told;
  }
}

function unlimited({ most }: Ask): Answer {
  return { kind: "given", units: most, isStricter: false };
}
