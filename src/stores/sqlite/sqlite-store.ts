import { randomUUID } from "node:crypto";
import { resolve as absolute } from "node:path";
import { setImmediate } from "node:timers/promises";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { answerAll } from "../exchange.ts";
import { changeNote, seenAll, seenAt } from "../records.ts";
import {
  type Answer,
  type Ask,
  LEASE_MS,
  type NoteSeen,
  type NoteStep,
  type Settlement,
  type Store,
} from "../store.ts";
import type { Moment } from "./budget-row.ts";
import { machineBoot } from "./machine-boot.ts";
import { type OpeningOptions, openWhenFree, pause, tellAside } from "./open-database.ts";
import { MovedError, SqliteConnection, type SqliteTables, STORE_FORMAT } from "./sqlite-connection.ts";
import { isBusy, isDamage, messageOf } from "./sqlite-errors.ts";
import type { SqliteNotes } from "./sqlite-records.ts";
import { ExchangeQueue, type WaitingCall } from "./transaction-queue.ts";

export interface SqliteStoreOptions {
  readonly time: Time;
  /** For pauses, from 0 to 1. @default Math.random */
  readonly random?: () => number;
  /** Told when a damaged file was set aside. */
  readonly onTrouble?: (error: StoreError) => void;
  /** How long a process that is not heard of keeps what it has out. The same for all who share a file. @default LEASE_MS */
  readonly leaseMs?: number;
  /** Which start of the machine it is. @default what the system says */
  readonly boot?: string;
  /** How long a call waits for a file that another process has locked. @default 500 */
  readonly timeoutMs?: number;
}

/** A transaction lasts a millisecond or less: a process that holds the lock for this long is stuck. */
const TIMEOUT_MS = 500;
/** At the start there may be many who come at once, and a file to be set aside. */
const OPENING_MS = 5000;
const PAUSE = { baseMs: 1, capMs: 20 };
/**
 * Who had the file for a while leaves it to others for so many times as long, for each of them. SQLite's lock goes to
 * whoever comes when it is free: without this, one that always has something to say would starve those who pause.
 */
const REST_FACTOR = 2;
/** So much may be owed before it rests: what comes now and then never waits. */
const REST_US_MIN = 5000;
const REST_US_MAX = 100_000;

/**
 * Budgets and notes in a file that the processes of one machine share (laws S2, B8). Each call is part of one transaction. While
 * another process writes, calls gather and are done together; nobody sleeps inside SQLite. A file that vanishes is
 * opened anew, a damaged one is set aside: the next call finds a new one.
 *
 * It belongs to the process and the thread that opened it (law S5).
 */
export class SqliteStore implements Store {
  readonly #options: OpeningOptions;
  readonly #leaseUs: number;
  readonly #boot: string;
  readonly #timeoutMs: number;
  readonly party: string = randomUUID();
  readonly #queue = new ExchangeQueue();
  #connection: SqliteConnection | undefined;
  #draining: Promise<void> | undefined;
  #isClosed = false;
  #processes = 1;
  /** When it has left the file alone for long enough. */
  #restedUs = 0;

  static async open(file: string, options: SqliteStoreOptions): Promise<SqliteStore> {
    const store = new SqliteStore(absolute(file), options);
    const openingMs = Math.max(OPENING_MS, store.#timeoutMs);
    await store.#connect(openingMs);
    // So that the others count this process from now on, and what cannot be written is known.
    await store.#queued({ act: () => undefined, timeoutMs: openingMs }).catch(error => {
      store.#connection?.drop();
      throw error;
    });
    return store;
  }

  private constructor(path: string, options: SqliteStoreOptions) {
    const {
      time,
      random = Math.random,
      onTrouble = () => undefined,
      leaseMs = LEASE_MS,
      boot,
      timeoutMs = TIMEOUT_MS,
    } = options;
    this.#options = { path, format: STORE_FORMAT, time, random, onTrouble: error => tell(onTrouble, error) };
    this.#leaseUs = leaseMs * 1000;
    this.#boot = boot ?? machineBoot();
    this.#timeoutMs = timeoutMs;
  }

  get processes(): number {
    return Math.max(1, this.#processes);
  }

  exchange(settlements: readonly Settlement[], asks: readonly Ask[]): Promise<readonly Answer[]> {
    const act = ({ budgets, contact }: SqliteTables) => answerAll(budgets, asks, contact);
    return this.#queued({ settlements, act, size: settlements.length + asks.length, isUrgent: false });
  }

  read<Note>(name: string): Promise<NoteSeen<Note>> {
    return this.#look(
      (notes, now) => seenAt(notes.find(name, now), now.machineUs),
      ({ notes, contact }) => seenAt(notes.find(name), contact.nowUs),
    );
  }

  change<Note, Result>(name: string, step: (seen: NoteSeen<Note>) => NoteStep<Note, Result>): Promise<Result> {
    // What a step throws is its caller's: the transaction is that of others, too.
    const safely = (seen: NoteSeen<Note>): NoteStep<Note, () => Result> => {
      try {
        const { note, result } = step(seen);
        return { note, result: () => result };
      } catch (error) {
        return {
          result: () => {
            throw error;
          },
        };
      }
    };
    const changed = this.#queued({ act: ({ notes, contact }) => changeNote(notes, name, contact.nowUs, safely) });
    return changed.then(result => result());
  }

  async list<Note>(prefix: string): Promise<readonly (NoteSeen<Note> & { readonly name: string })[]> {
    const now = this.#now();
    const found = await this.#look(
      notes => notes.list(prefix, now),
      ({ notes }) => notes.list(prefix),
    );
    return seenAll<Note>(found, now.machineUs);
  }

  /** At once where that can be; in line with the others where the file has to be opened, or is being looked after. */
  async #look<Value>(
    directly: (notes: SqliteNotes, now: Moment) => Value,
    inLine: (tables: SqliteTables) => Value,
  ): Promise<Value> {
    if (this.#connection === undefined || this.#isClosed) return this.#queued({ act: inLine });
    try {
      return this.#connection.look(notes => directly(notes, this.#now()));
    } catch {
      // Whatever it is, it is met again there, where it is dealt with.
      return this.#queued({ act: inLine });
    }
  }

  #queued<Value>({
    settlements = [],
    act,
    size = 1,
    isUrgent = true,
    timeoutMs = this.#timeoutMs,
  }: {
    readonly settlements?: readonly Settlement[];
    readonly act: (tables: SqliteTables) => Value;
    readonly size?: number;
    readonly isUrgent?: boolean;
    readonly timeoutMs?: number;
  }): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    if (this.#isClosed) {
      reject(new StoreError(`the store ${this.#options.path} is closed`));
      return promise;
    }
    const deadlineUs = this.#options.time.monotonicUs() + timeoutMs * 1000;
    this.#queue.push({
      settlements,
      act,
      size,
      isUrgent,
      deadlineUs,
      resolve: resolve as (result: unknown) => void,
      reject,
    });
    this.#draining ??= this.#drain();
    return promise;
  }

  /** When what was asked for is answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
    this.#connection?.close();
    this.#connection = undefined;
  }

  async #drain(): Promise<void> {
    // Calls of one turn share a transaction.
    await Promise.resolve();
    for (let busy = 0; !this.#queue.isEmpty; ) {
      try {
        await this.#connect(this.#timeoutMs);
        await this.#rest();
        this.#doBatch();
        busy = 0;
        // Whoever asks again as soon as he has his answer must not keep the event loop to himself.
        await setImmediate();
      } catch (error) {
        busy += 1;
        await this.#onBusy(busy, error);
      }
    }
    this.#draining = undefined;
  }

  /** Leaves the others their time. What comes meanwhile is done together. */
  async #rest(): Promise<void> {
    const { time } = this.#options;
    const owedUs = this.#restedUs - time.monotonicUs();
    if (owedUs > REST_US_MIN && !this.#queue.isUrgent) await pause(time, (owedUs - REST_US_MIN) / 1000);
  }

  #oweRest(beganUs: number, endedUs: number): void {
    // One that comes newly has not been counted yet.
    const others = Math.max(1, this.#processes - 1);
    const restedUs = Math.max(this.#restedUs, endedUs) + (endedUs - beganUs) * others * REST_FACTOR;
    this.#restedUs = Math.min(restedUs, endedUs + REST_US_MAX);
  }

  async #connect(timeoutMs: number): Promise<void> {
    if (this.#connection !== undefined) return;
    try {
      const file = await openWhenFree(this.#options, timeoutMs);
      this.#connection = SqliteConnection.on(file, this.#options.path, this.party, this.#leaseUs);
    } catch (error) {
      this.#fail(this.#queue.batch(), error);
      // Without a call to tell it, this is `open` itself.
      throw error;
    }
  }

  /** Does what is in line. Throws only when it should be tried again soon. */
  #doBatch(): void {
    const batch = this.#queue.batch();
    const connection = this.#connection;
    if (connection === undefined || batch.length === 0) return;
    const { time } = this.#options;
    const beganUs = time.monotonicUs();
    try {
      const results = connection.transact(batch, () => this.#now());
      this.#processes = connection.processes;
      this.#oweRest(beganUs, time.monotonicUs());
      this.#queue.remove(batch);
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
    } catch (error) {
      if (error instanceof MovedError) this.#letGo();
      if (error instanceof MovedError || isBusy(error)) throw error;
      this.#fail(batch, this.#onFailure(error));
    }
  }

  /** Those who have waited too long wait no more; the others try again after a pause, wider each time. */
  async #onBusy(failed: number, cause: unknown): Promise<void> {
    const { path, time, random } = this.#options;
    for (const { reject } of this.#queue.removeOverdue(time.monotonicUs()))
      reject(new StoreError(`the store ${path} was locked by another process for ${this.#timeoutMs} ms`, { cause }));
    if (!this.#queue.isEmpty) await pause(time, backoffMs(PAUSE, failed, random(), 1));
  }

  /** A damaged file makes room for a new one; whatever else it was may have passed when it is tried again. */
  #onFailure(error: unknown): StoreError {
    const { path } = this.#options;
    if (!isDamage(error))
      return new StoreError(`the store ${path} cannot be used: ${messageOf(error)}`, { cause: error });
    const identity = this.#connection?.file.identity;
    this.#letGo();
    try {
      tellAside(this.#options, identity, error);
    } catch (stuck) {
      if (stuck instanceof StoreError) return stuck;
    }
    return new StoreError(`the store ${path} was damaged: ${messageOf(error)}`, { cause: error });
  }

  #letGo(): void {
    this.#connection?.drop();
    this.#connection = undefined;
  }

  #fail(batch: readonly WaitingCall[], error: unknown): void {
    this.#queue.remove(batch);
    for (const { reject } of batch) reject(error);
  }

  #now(): Moment {
    const { time } = this.#options;
    return { boot: this.#boot, machineUs: time.machineUs(), wallMs: time.wallMs() };
  }
}

function tell(listener: (error: StoreError) => void, error: StoreError): void {
  try {
    listener(error);
  } catch {
    // A listener that throws is no reason to do without the store.
  }
}
