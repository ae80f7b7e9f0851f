import { randomUUID } from "node:crypto";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
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
import { PostgresClient } from "./postgres-client.ts";
import { loadPgDriver } from "./postgres-driver.ts";
import { PostgresExchanges } from "./postgres-exchanges.ts";
import { PostgresRecords } from "./postgres-records.ts";
import type { PostgresSessionOptions } from "./postgres-session.ts";
import { PostgresSignals } from "./postgres-signals.ts";
import { type PostgresStoreAddress, parsePostgresStoreUrl } from "./postgres-store-url.ts";
import { prepareTables } from "./postgres-tables.ts";

export interface PostgresStoreOptions {
  readonly time: Time;
  /** How long a silent process keeps its leased units, in milliseconds. The same in all processes. @default LEASE_MS */
  readonly leaseMs?: number;
  /** How long a call waits for the server, and for budgets that another process has locked, in ms. @default 1000 */
  readonly timeoutMs?: number;
  /** Unique among all processes that share the store. @default a random one */
  readonly processId?: string;
  /** Replaces the server's clock in tests. */
  readonly serverUs?: () => number;
  /** For a command that only reads and gives orders: it is not counted among the processes. @default false */
  readonly isObserver?: boolean;
}

const TIMEOUT_MS = 1000;

/**
 * Budgets and records in a PostgreSQL database. Exchanges are decided at the clock of the server, so the clocks of the
 * processes may differ.
 */
export class PostgresStore implements Store {
  readonly processId: string;
  readonly signals: PostgresSignals;
  readonly #exchanges: PostgresExchanges;
  readonly #records: PostgresRecords;
  readonly #clients: readonly [budgets: PostgresClient, records: PostgresClient];
  readonly #isObserver: boolean;
  #isClosed = false;

  /** Rejects with a StoreError; permanent for a wrong password, an unknown database or a schema with other tables. */
  static async open(url: string, options: PostgresStoreOptions): Promise<PostgresStore> {
    const { timeoutMs = TIMEOUT_MS } = options;
    const address = parsePostgresStoreUrl(url);
    const driver = await loadPgDriver({
      // A session has limits of its own.
      ...{ url: address.url, schema: address.schema, queryTimeoutMs: 0, connectTimeoutMs: 0 },
      // No transaction of a store waits for its process. This ends a transaction that a lost connection has left open.
      ...{ idleInTransactionMs: Math.ceil(timeoutMs / 2), lockTimeoutMs: timeoutMs },
    });
    const store = new PostgresStore(address, { driver, timeoutMs, time: options.time }, options);
    try {
      // With its first exchange the other processes count this one. An observer is not counted.
      if (options.isObserver === true) await store.#records.read("");
      else await store.exchange([], []);
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  }

  private constructor(
    { schema }: PostgresStoreAddress,
    sessions: PostgresSessionOptions,
    options: PostgresStoreOptions,
  ) {
    const { time, leaseMs = LEASE_MS, serverUs, isObserver = false, processId = randomUUID() } = options;
    this.processId = processId;
    const budgets = new PostgresClient(sessions, session => prepareTables(session, schema));
    const records = new PostgresClient(sessions, session => prepareTables(session, schema));
    this.#clients = [budgets, records];
    this.#isObserver = isObserver;
    // A store that is opened again with the same id must have higher numbers than before.
    const lastNumber = Math.floor(time.monotonicUs());
    const leaseUs = leaseMs * 1000;
    this.#exchanges = new PostgresExchanges({ client: budgets, processId, lastNumber, leaseUs, serverUs });
    this.#records = new PostgresRecords(records, serverUs);
    this.signals = new PostgresSignals(records, sessions, schema);
  }

  get processes(): number {
    return this.#exchanges.processes;
  }

  async exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): Promise<readonly LeaseReply[]> {
    this.#checkOpen();
    return this.#exchanges.exchange(settlements, requests, reports, dead);
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    this.#checkOpen();
    return this.#records.read(name);
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    this.#checkOpen();
    return this.#records.change(name, step);
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    this.#checkOpen();
    return this.#records.list(prefix);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.signals.close();
    if (!this.#isObserver) await this.#exchanges.close();
    for (const client of this.#clients) await client.close();
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StoreError("the PostgreSQL store is closed");
  }
}
