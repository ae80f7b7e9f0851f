import { randomUUID } from "node:crypto";
import { resolve as absolute } from "node:path";
import { setImmediate } from "node:timers/promises";
import { backoffMs } from "../../core/breaker/backoff.ts";
import { messageOf, StoreError } from "../../errors.ts";
import { pause } from "../../time/pause.ts";
import type { Time } from "../../time/time.ts";
import { leaseAll, reportAll } from "../exchange.ts";
import { changeRecord, recordAt, recordsAt } from "../records.ts";
import {
  LEASE_MS,
  type LeaseReply,
  type LeaseRequest,
  type RecordUpdate,
  type Settlement,
  type Store,
  type StoreRecord,
  type UseReport,
} from "../store.ts";
import { FileSignals } from "./file-signals.ts";
import { LockFairness } from "./lock-fairness.ts";
import { machineBootId } from "./machine-boot.ts";
import type { MachineInstant } from "./machine-instant.ts";
import { type OpeningOptions, openWhenFree, setAsideAndReport } from "./open-database.ts";
import { FileMovedError, SqliteConnection, type SqliteTables, STORE_FORMAT } from "./sqlite-connection.ts";
import { isBusy, isDamage } from "./sqlite-errors.ts";
import type { SqliteRecords } from "./sqlite-records.ts";
import { type QueuedTransaction, TransactionQueue } from "./transaction-queue.ts";

export interface SqliteStoreOptions {
  readonly time: Time;
  /** Source of randomness in [0, 1) for the pauses between attempts. @default Math.random */
  readonly random?: () => number;
  /** Called when a damaged file was renamed and replaced, or a damaged row was removed. @default none */
  readonly onTrouble?: (error: StoreError) => void;
  /**
   * How long a silent process keeps its leased units, in milliseconds. Must be the same in all processes that share
   * the file. @default LEASE_MS
   */
  readonly leaseMs?: number;
  /** Only the owner may read the file. Otherwise a new file has the permissions of the umask. @default false */
  readonly isPrivate?: boolean | undefined;
  /** Unique among all processes that share the store. @default a random one */
  readonly processId?: string;
  /** Identifies the current start of the machine. @default read from the system */
  readonly boot?: string;
  /** How long a call waits for a file that another process has locked, in milliseconds. @default 500 */
  readonly timeoutMs?: number;
}

/** A transaction takes a millisecond or less: a process that holds the lock for this long is stuck. */
const TIMEOUT_MS = 500;
/** Longer than for a call: many processes may open the file at once, and a damaged file may have to be replaced. */
const OPENING_MS = 5000;
const PAUSE = { baseMs: 1, capMs: 20 };

/**
 * Budgets and records in a file that the processes of one machine share (laws S2, B8). Each call is part of one
 * transaction. While another process writes, calls are queued, and then run in one transaction: the event loop is never
 * blocked inside SQLite. A file that was deleted is created again. A damaged file is renamed and replaced.
 *
 * The store belongs to the process and the thread that opened it (law S5).
 */
export class SqliteStore implements Store {
  readonly #options: OpeningOptions;
  readonly #leaseUs: number;
  readonly #boot: string;
  readonly #timeoutMs: number;
  readonly processId: string;
  readonly signals: FileSignals;
  readonly #queue = new TransactionQueue();
  #connection: SqliteConnection | undefined;
  #draining: Promise<void> | undefined;
  #isClosed = false;
  #processes = 1;
  readonly #fairness = new LockFairness();

  static async open(file: string, options: SqliteStoreOptions): Promise<SqliteStore> {
    const store = new SqliteStore(absolute(file), options);
    const openingMs = Math.max(OPENING_MS, store.#timeoutMs);
    await store.#connect(openingMs);
    // An empty transaction: from now on the other processes count this one. It fails if the file cannot be written.
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
      isPrivate = false,
      processId = randomUUID(),
    } = options;
    this.processId = processId;
    const report = (error: StoreError) => notify(onTrouble, error);
    this.#options = { path, format: STORE_FORMAT, time, random, onTrouble: report, isPrivate };
    this.#leaseUs = leaseMs * 1000;
    this.#boot = boot ?? machineBootId();
    this.#timeoutMs = timeoutMs;
    this.signals = new FileSignals(path);
  }

  get processes(): number {
    return Math.max(1, this.#processes);
  }

  exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): Promise<readonly LeaseReply[]> {
    const run = ({ budgets, context: instant }: SqliteTables) => {
      const context = { ...instant, dead };
      reportAll(budgets, reports, context);
      return leaseAll(budgets, requests, context);
    };
    const size = settlements.length + requests.length + reports.length;
    return this.#queued({ settlements, run, size, isUrgent: false });
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
    // An exception of `step` concerns its caller only: it must not abort the transaction, which serves other calls too.
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

  /** Reads at once if the file is open and usable; otherwise queues a transaction, which opens or repairs the file. */
  async #read<Value>(
    directly: (records: SqliteRecords, now: MachineInstant) => Value,
    asTransaction: (tables: SqliteTables) => Value,
  ): Promise<Value> {
    if (this.#connection === undefined || this.#isClosed) return this.#queued({ run: asTransaction });
    try {
      return this.#connection.read(records => directly(records, this.#now()));
    } catch {
      // The transaction gets the same error, and handles it.
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
      timeoutMs,
      deadlineUs,
      resolve: resolve as (result: unknown) => void,
      reject,
    });
    this.#draining ??= this.#drain();
    return promise;
  }

  /** Waits until the queued calls are answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
    this.#connection?.close();
    this.#connection = undefined;
  }

  async #drain(): Promise<void> {
    // Calls made in the same turn of the event loop share a transaction.
    await Promise.resolve();
    for (let failedAttempts = 0; !this.#queue.isEmpty; ) {
      try {
        await this.#connect(this.#timeoutMs);
        await this.#yieldToOthers();
        this.#runBatch();
        failedAttempts = 0;
        // A caller that asks again at every reply must not block the rest of the event loop.
        await setImmediate();
      } catch (error) {
        failedAttempts += 1;
        await this.#onBusy(failedAttempts, error);
      }
    }
    this.#draining = undefined;
  }

  /** Calls that arrive during the pause are done in the same transaction. */
  async #yieldToOthers(): Promise<void> {
    const { time } = this.#options;
    const pauseMs = this.#fairness.pauseMs(time.monotonicUs());
    if (pauseMs > 0 && !this.#queue.isUrgent) await pause(time, pauseMs);
  }

  async #connect(timeoutMs: number): Promise<void> {
    if (this.#connection !== undefined) return;
    try {
      const file = await openWhenFree(this.#options, timeoutMs);
      const { path, onTrouble } = this.#options;
      this.#connection = SqliteConnection.on(file, path, this.processId, { leaseUs: this.#leaseUs, onTrouble });
    } catch (error) {
      this.#fail(this.#queue.batch(), error);
      // `open` has no queued call to reject, so it needs the error itself.
      throw error;
    }
  }

  /** Runs one batch of the queue. Throws only an error after which the batch is to be tried again soon. */
  #runBatch(): void {
    const batch = this.#queue.batch();
    const connection = this.#connection;
    if (connection === undefined || batch.length === 0) return;
    const { time } = this.#options;
    const beganUs = time.monotonicUs();
    try {
      const results = connection.transact(batch, () => this.#now());
      this.#processes = connection.processCount;
      this.#fairness.recordTransaction(beganUs, time.monotonicUs(), this.#processes);
      this.#queue.remove(batch);
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
    } catch (error) {
      if (error instanceof FileMovedError) this.#disconnect();
      if (error instanceof FileMovedError || isBusy(error)) throw error;
      this.#fail(batch, this.#onFailure(error));
    }
  }

  /** Rejects the calls that have waited too long; the others are tried again after a pause that grows. */
  async #onBusy(failedAttempts: number, cause: unknown): Promise<void> {
    const { path, time, random } = this.#options;
    for (const { reject, timeoutMs } of this.#queue.removeOverdue(time.monotonicUs()))
      reject(new StoreError(`the store ${path} was locked by another process for ${timeoutMs} ms`, { cause }));
    if (!this.#queue.isEmpty) await pause(time, backoffMs(PAUSE, failedAttempts, random(), 1));
  }

  /** Replaces a damaged file. After any other failure, the next call tries again. */
  #onFailure(error: unknown): StoreError {
    const { path } = this.#options;
    if (!isDamage(error)) return new StoreError(`cannot use the store ${path}: ${messageOf(error)}`, { cause: error });
    const identity = this.#connection?.file.identity;
    this.#disconnect();
    try {
      setAsideAndReport(this.#options, identity, error);
    } catch (renameError) {
      if (renameError instanceof StoreError) return renameError;
    }
    return new StoreError(`the store ${path} is damaged: ${messageOf(error)}`, { cause: error });
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
    // An exception of the listener must not make the store fail.
  }
}
