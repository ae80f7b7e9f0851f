import { randomUUID } from "node:crypto";
import { resolve as absolute } from "node:path";
import { setImmediate } from "node:timers/promises";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { leaseAll } from "../exchange.ts";
import { changeRecord, recordAt, recordsAt } from "../records.ts";
import {
  LEASE_MS,
  type LeaseReply,
  type LeaseRequest,
  type RecordUpdate,
  type Settlement,
  type Store,
  type StoreRecord,
} from "../store.ts";
import type { MachineInstant } from "./budget-row.ts";
import { machineBootId } from "./machine-boot.ts";
import { type OpeningOptions, openWhenFree, pause, setAsideAndReport } from "./open-database.ts";
import { FileMovedError, SqliteConnection, type SqliteTables, STORE_FORMAT } from "./sqlite-connection.ts";
import { isBusy, isDamage, messageOf } from "./sqlite-errors.ts";
import type { SqliteRecords } from "./sqlite-records.ts";
import { type QueuedTransaction, TransactionQueue } from "./transaction-queue.ts";

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
const YIELD_FACTOR = 2;
/** So much may be owed before it rests: what comes now and then never waits. */
const YIELD_US_MIN = 5000;
const YIELD_US_MAX = 100_000;

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
  readonly processId: string = randomUUID();
  readonly #queue = new TransactionQueue();
  #connection: SqliteConnection | undefined;
  #draining: Promise<void> | undefined;
  #isClosed = false;
  #processes = 1;
  /** When it has left the file alone for long enough. */
  #yieldUntilUs = 0;

  static async open(file: string, options: SqliteStoreOptions): Promise<SqliteStore> {
    const store = new SqliteStore(absolute(file), options);
    const openingMs = Math.max(OPENING_MS, store.#timeoutMs);
    await store.#connect(openingMs);
    // So that the others count this process from now on, and what cannot be written is known.
    await store.#queued({ run: () => undefined, timeoutMs: openingMs }).catch(error => {
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
    this.#options = { path, format: STORE_FORMAT, time, random, onTrouble: error => notify(onTrouble, error) };
    this.#leaseUs = leaseMs * 1000;
    this.#boot = boot ?? machineBootId();
    this.#timeoutMs = timeoutMs;
  }

  get processes(): number {
    return Math.max(1, this.#processes);
  }

  exchange(settlements: readonly Settlement[], requests: readonly LeaseRequest[]): Promise<readonly LeaseReply[]> {
    const run = ({ budgets, context }: SqliteTables) => leaseAll(budgets, requests, context);
    return this.#queued({ settlements, run, size: settlements.length + requests.length, isUrgent: false });
  }

  read<Value>(name: string): Promise<StoreRecord<Value>> {
    return this.#read(
      (records, now) => recordAt(records.find(name, now), now.machineUs),
      ({ records, context }) => recordAt(records.find(name), context.nowUs),
    );
  }

  change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    // What a step throws is its caller's: the transaction is that of others, too.
    const safely = (current: StoreRecord<Value>): RecordUpdate<Value, () => Result> => {
      try {
        const { record, result } = step(current);
        return { record, result: () => result };
      } catch (error) {
        return {
          result: () => {
            throw error;
          },
        };
      }
    };
    const changed = this.#queued({ run: ({ records, context }) => changeRecord(records, name, context.nowUs, safely) });
    return changed.then(result => result());
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    const now = this.#now();
    const found = await this.#read(
      records => records.list(prefix, now),
      ({ records }) => records.list(prefix),
    );
    return recordsAt<Value>(found, now.machineUs);
  }

  /** At once where that can be; in line with the others where the file has to be opened, or is being looked after. */
  async #read<Value>(
    directly: (records: SqliteRecords, now: MachineInstant) => Value,
    asTransaction: (tables: SqliteTables) => Value,
  ): Promise<Value> {
    if (this.#connection === undefined || this.#isClosed) return this.#queued({ run: asTransaction });
    try {
      return this.#connection.read(records => directly(records, this.#now()));
    } catch {
      // Whatever it is, it is met again there, where it is dealt with.
      return this.#queued({ run: asTransaction });
    }
  }

  #queued<Value>({
    settlements = [],
    run,
    size = 1,
    isUrgent = true,
    timeoutMs = this.#timeoutMs,
  }: {
    readonly settlements?: readonly Settlement[];
    readonly run: (tables: SqliteTables) => Value;
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
      run,
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
        await this.#yieldToOthers();
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
  async #yieldToOthers(): Promise<void> {
    const { time } = this.#options;
    const yieldUs = this.#yieldUntilUs - time.monotonicUs();
    if (yieldUs > YIELD_US_MIN && !this.#queue.isUrgent) await pause(time, (yieldUs - YIELD_US_MIN) / 1000);
  }

  #extendYield(beganUs: number, endedUs: number): void {
    // One that comes newly has not been counted yet.
    const others = Math.max(1, this.#processes - 1);
    const yieldUntilUs = Math.max(this.#yieldUntilUs, endedUs) + (endedUs - beganUs) * others * YIELD_FACTOR;
    this.#yieldUntilUs = Math.min(yieldUntilUs, endedUs + YIELD_US_MAX);
  }

  async #connect(timeoutMs: number): Promise<void> {
    if (this.#connection !== undefined) return;
    try {
      const file = await openWhenFree(this.#options, timeoutMs);
      this.#connection = SqliteConnection.on(file, this.#options.path, this.processId, this.#leaseUs);
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
      this.#extendYield(beganUs, time.monotonicUs());
      this.#queue.remove(batch);
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
    } catch (error) {
      if (error instanceof FileMovedError) this.#disconnect();
      if (error instanceof FileMovedError || isBusy(error)) throw error;
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
    this.#disconnect();
    try {
      setAsideAndReport(this.#options, identity, error);
    } catch (stuck) {
      if (stuck instanceof StoreError) return stuck;
    }
    return new StoreError(`the store ${path} was damaged: ${messageOf(error)}`, { cause: error });
  }

  #disconnect(): void {
    this.#connection?.drop();
    this.#connection = undefined;
  }

  #fail(batch: readonly QueuedTransaction[], error: unknown): void {
    this.#queue.remove(batch);
    for (const { reject } of batch) reject(error);
  }

  #now(): MachineInstant {
    const { time } = this.#options;
    return { boot: this.#boot, machineUs: time.machineUs(), wallMs: time.wallMs() };
  }
}

function notify(listener: (error: StoreError) => void, error: StoreError): void {
  try {
    listener(error);
  } catch {
    // A listener that throws is no reason to do without the store.
  }
}
