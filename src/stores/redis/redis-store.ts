import { randomUUID } from "node:crypto";
import { EvictingMap } from "../../core/evicting-map.ts";
import { messageOf, StoreError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import { ORDER_LOG_NAME } from "../order-log.ts";
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
import { type RedisBatch, requestKeyOf } from "./redis-batch.ts";
import { RedisCallQueue } from "./redis-call-queue.ts";
import { isPermanent, RedisConnection } from "./redis-connection.ts";
import { RedisHistories } from "./redis-history.ts";
import { DEFAULT_PREFIX, RedisKeys } from "./redis-keys.ts";
import { RedisLedger } from "./redis-ledger.ts";
import { RedisRecords } from "./redis-records.ts";
import { RedisRefusalCache } from "./redis-refusal-cache.ts";
import { SCRIPT, SCRIPT_SHA } from "./redis-script.ts";
import { RedisSignals } from "./redis-signals.ts";
import { parseRedisUrl } from "./redis-url.ts";
import {
  leaseRepliesOf,
  presenceCallOf,
  readReply,
  type ScriptCall,
  type ScriptCaller,
  scriptCallOf,
} from "./script-call.ts";

export interface RedisStoreOptions {
  /** The beginning of the keys. Processes with the same prefix share their budgets. @default from the URL, or "docstokg" */
  readonly prefix?: string;
  /** How long a silent process keeps its leased units, in milliseconds. @default LEASE_MS */
  readonly leaseMs?: number;
  /** How long a reply may take before the call fails, in milliseconds. @default from the URL, or 1000 */
  readonly timeoutMs?: number;
  /** How long a "wait" reply is repeated from memory, in milliseconds; 0 asks the server each time. @default 50 */
  readonly trustMs?: number;
  /** The clocks and timers to use. @default the clocks of this machine */
  readonly time?: Time;
  /** For a command that only reads and gives orders: it is not counted among the processes. @default false */
  readonly isObserver?: boolean;
  /** Unique among all processes that share the store. @default a random one */
  readonly processId?: string;
  /** Replaces the server's clock in tests. */
  readonly serverUs?: () => number;
}

const BUDGET_SCRIPT = { text: SCRIPT, sha: SCRIPT_SHA };
/** A process renews its entry in the list of processes at most this often. */
const PRESENCE_US = 1_000_000;
/** An idle queue could be dropped at once. Keeping this many keeps what they know of the server's clock. */
const KEPT_QUEUES = 1024;

/**
 * Budgets and records on a Redis server. One script decides by the server's clock, so the clocks of the processes may
 * differ (law S3).
 *
 * A server that was restarted or promoted may lack data. Its processes then report again which units they have leased,
 * and which units they know to be in use (`UseReport`).
 */
export class RedisStore implements Store {
  readonly #connection: RedisConnection;
  readonly processId: string;
  readonly signals: RedisSignals;
  readonly #records: RedisRecords;
  readonly #keys: RedisKeys;
  readonly #leaseUs: number;
  readonly #timeoutUs: number;
  readonly #time: Time;
  readonly #serverUs: (() => number) | undefined;
  readonly #isObserver: boolean;
  readonly #ledger: RedisLedger;
  readonly #refusals: RedisRefusalCache;
  readonly #histories = new RedisHistories();
  /** By slot. In a cluster, each host may have its own. */
  readonly #queues = new EvictingMap<RedisCallQueue>(queue => queue.isIdle, KEPT_QUEUES);
  #processes = 1;
  /** Of the last exchange. */
  #dead: readonly string[] = [];
  #announcedUs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  /**
   * Rejects with a permanent StoreError if the driver is missing, the address is invalid, its host does not exist, or
   * the server refuses the credentials or the database. It does not reject if the server is unreachable: then each
   * exchange fails until the server is back (law S4).
   */
  static async open(url: string, options: RedisStoreOptions = {}): Promise<RedisStore> {
    const address = parseRedisUrl(url);
    const { timeoutMs = address.timeoutMs ?? 1000, time = systemTime, trustMs = 50 } = options;
    const ledger = new RedisLedger();
    const refusals = new RedisRefusalCache(trustMs * 1000);
    const onLost = () => {
      ledger.markUncertain([], time.monotonicUs());
      refusals.clear();
    };
    const connection = new RedisConnection(address, { timeoutMs, time, onLost });
    const prefix = options.prefix ?? address.prefix ?? DEFAULT_PREFIX;
    const keys = new RedisKeys(prefix, address.kind === "cluster");
    const store = new RedisStore(connection, ledger, refusals, keys, { ...options, prefix, timeoutMs });
    try {
      if (store.#isObserver) await store.#records.read(ORDER_LOG_NAME);
      else await store.#announce(store.#leaseUs);
    } catch (error) {
      if (error instanceof StoreError && (isPermanent(error) || isUnknownName(error))) {
        connection.close();
        const advice = isUnknownName(error) ? "; check the host in the URL of the store" : "";
        throw new StoreError(error.message + advice, { cause: error.cause, isPermanent: true });
      }
      // The server may be reachable later. Until then each call rejects.
    }
    return store;
  }

  private constructor(
    connection: RedisConnection,
    ledger: RedisLedger,
    refusals: RedisRefusalCache,
    keys: RedisKeys,
    options: RedisStoreOptions & { readonly prefix: string; readonly timeoutMs: number },
  ) {
    const { prefix, leaseMs = LEASE_MS, timeoutMs } = options;
    this.#connection = connection;
    this.processId = options.processId ?? randomUUID();
    this.#ledger = ledger;
    this.#refusals = refusals;
    this.#keys = keys;
    this.#leaseUs = leaseMs * 1000;
    this.#timeoutUs = timeoutMs * 1000;
    this.#time = options.time ?? systemTime;
    this.#serverUs = options.serverUs;
    this.#isObserver = options.isObserver ?? false;
    this.#records = new RedisRecords(connection, prefix, options.serverUs);
    this.signals = new RedisSignals(connection, prefix);
  }

  get processes(): number {
    return this.#processes;
  }

  async exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): Promise<readonly LeaseReply[]> {
    if (this.#isClosed) throw new StoreError("the Redis store is closed");
    this.#dead = dead;
    const replies: LeaseReply[] = [];
    const batches = new Set<RedisBatch>();
    for (const settlement of settlements) {
      if (settlement.keys.length === 0) continue;
      const batch = this.#queueOf(settlement.keys).open();
      batch.settle(settlement);
      batches.add(batch);
      if (settlement.returned > 0) this.#refusals.clear();
    }
    for (const report of reports) {
      const batch = this.#queueOf(report.keys).open();
      batch.report(report);
      batches.add(batch);
      this.#refusals.clear();
    }
    const nowUs = this.#time.monotonicUs();
    for (const [index, request] of requests.entries()) {
      const requestKey = requestKeyOf(request);
      // After a death the units may be free earlier than a reply has said.
      const refusal = dead.length > 0 ? undefined : this.#refusals.reply(requestKey, nowUs);
      const localReply = request.claims.length === 0 ? unlimited(request) : refusal;
      if (localReply !== undefined) {
        replies[index] = localReply;
        continue;
      }
      const batch = this.#queueOf(request.claims.map(({ key }) => key)).open();
      batch.request(requestKey, request, reply => {
        replies[index] = reply;
      });
      batches.add(batch);
    }
    // An empty exchange contacts the server too: a process that has lost the store checks this way whether it is back.
    if (settlements.length + requests.length + reports.length === 0)
      await this.#announce(this.#leaseUs).catch(error => Promise.reject(toStoreError(error)));
    else if (this.#keys.isCluster && this.#isPresenceDue) void this.#announce(this.#leaseUs).catch(() => undefined);
    if (batches.size > 0) await this.#awaitAll(batches, requests, replies);
    return replies;
  }

  read<Value>(name: string): Promise<StoreRecord<Value>> {
    return this.#withRecords(() => this.#records.read(name));
  }

  change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    return this.#withRecords(() => this.#records.change(name, step));
  }

  list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    return this.#withRecords(() => this.#records.list(prefix));
  }

  async #withRecords<Value>(run: () => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new StoreError("the Redis store is closed");
    return run().catch(error => Promise.reject(toStoreError(error)));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all(Array.from(this.#queues.values(), queue => queue.idle()));
    // If the server is unreachable, the entry of this process expires with its lease.
    if (!this.#isObserver) await this.#announce(0).catch(() => undefined);
    this.#connection.close();
  }

  async #awaitAll(
    batches: ReadonlySet<RedisBatch>,
    requests: readonly LeaseRequest[],
    replies: readonly LeaseReply[],
  ): Promise<void> {
    const [first] = batches;
    if (batches.size === 1) return first?.done;
    const outcomes = await Promise.allSettled(Array.from(batches, batch => batch.done));
    const failed = outcomes.find(outcome => outcome.status === "rejected");
    if (failed === undefined) return;
    // Several slots of a cluster were asked and one failed. The caller gets an error, so units granted by the others
    // cannot be used: they count as written.
    for (const [index, { claims }] of requests.entries()) {
      const reply = replies[index];
      if (reply?.kind !== "granted") continue;
      for (const { key } of claims) this.#ledger.recordSettlement(key, reply.units);
      this.#ledger.markUncertain(
        claims.map(({ key }) => key),
        this.#time.monotonicUs(),
      );
    }
    throw failed.reason;
  }

  #queueOf(budgetKeys: readonly string[]): RedisCallQueue {
    const slot = this.#keys.slotOf(budgetKeys);
    const existing = this.#queues.get(slot);
    if (existing !== undefined) return existing;
    const queue: RedisCallQueue = new RedisCallQueue({
      run: batch => this.#run(batch, slot, queue),
      isUncertain: () => this.#ledger.isUncertain,
    });
    this.#queues.add(slot, queue);
    return queue;
  }

  async #run(batch: RedisBatch, slot: string, queue: RedisCallQueue): Promise<void> {
    this.#ledger.forget(this.#time.monotonicUs() - this.#leaseUs);
    const { epoch } = this.#ledger;
    try {
      const presenceKey = this.#takePresenceKey();
      const keyOf = (key: string) => this.#keys.keyOf(key, slot);
      let history = "";
      const mayLackChanges = (key: string) => this.#histories.mayLackChanges(key, history);
      const rest = await this.#call(queue, keyOf(batch.anyKey), (caller, serverHistory) => {
        history = serverHistory;
        return scriptCallOf(batch, this.#ledger, { ...caller, keyOf, mayLackChanges, presenceKey, dead: this.#dead });
      });
      this.#applyReplies(batch, leaseRepliesOf(batch, rest), epoch, history);
    } catch (error) {
      this.#ledger.markUncertain(batch.keys(), this.#time.monotonicUs());
      this.#refusals.clear();
      throw toStoreError(error);
    }
  }

  #applyReplies(batch: RedisBatch, replies: readonly (readonly LeaseReply[])[], epoch: number, history: string): void {
    const nowUs = this.#time.monotonicUs();
    // If the connection was lost meanwhile, the units of these keys must be reported to the server again.
    const isConfirmed = epoch === this.#ledger.epoch;
    for (const [key, { written, returned }] of batch.settlements) {
      this.#ledger.recordSettlement(key, written + returned);
      if (isConfirmed) this.#ledger.confirmSettled(key);
    }
    for (const { claim } of batch.reports) {
      this.#histories.confirm(claim.key, history);
      if (isConfirmed) this.#ledger.confirm(claim.key);
    }
    let index = 0;
    for (const [requestKey, { request, onReply }] of batch.pending) {
      const ownReplies = replies[index] ?? [];
      const keys = request.claims.map(({ key }) => key);
      if (isConfirmed) for (const key of keys) this.#ledger.confirm(key);
      for (const [caller, reply] of ownReplies.entries()) {
        if (reply.kind === "granted") this.#ledger.recordGrant(keys, reply.units);
        onReply[caller]?.(reply);
      }
      const last = ownReplies.at(-1);
      if (last !== undefined) this.#refusals.record(requestKey, last, nowUs);
      if (last?.kind !== "wait" || last.isLost === undefined)
        for (const key of keys) this.#histories.confirm(key, history);
      index += 1;
    }
  }

  /**
   * Tries once more if the call came too late: it has had no effect, and the reply corrects the estimate of the
   * server's clock.
   */
  async #call(
    queue: RedisCallQueue,
    key: string,
    callFor: (caller: ScriptCaller, history: string) => ScriptCall,
  ): Promise<readonly number[]> {
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const notAfterUs = queue.serverUs(this.#time.monotonicUs(), this.#timeoutUs);
      const caller = { process: this.processId, leaseUs: this.#leaseUs, notAfterUs, timeUs: this.#serverUs?.() };
      const reply = await this.#connection.call(key, history => callFor(caller, history), BUDGET_SCRIPT);
      const { serverUs, processes, rest } = readReply(reply);
      queue.syncClock(serverUs, this.#time.monotonicUs());
      if (processes > 0) this.#processes = processes;
      if (rest !== undefined) return rest;
    }
    throw new StoreError(
      `redis: two calls reached the server after their deadline of ${this.#timeoutUs / 1000} ms; no units were granted`,
    );
  }

  get #isPresenceDue(): boolean {
    return this.#time.monotonicUs() - this.#announcedUs >= PRESENCE_US;
  }

  /** The list of processes, if a call is to renew the entry in it. In a cluster it may be on another server. */
  #takePresenceKey(): string | undefined {
    if (this.#keys.isCluster || this.#isObserver || !this.#isPresenceDue) return undefined;
    this.#announcedUs = this.#time.monotonicUs();
    return this.#keys.presence;
  }

  /** Renews the entry of this process in the list of processes, and counts them. A lease of 0 removes the entry. */
  async #announce(leaseUs: number): Promise<void> {
    this.#announcedUs = this.#time.monotonicUs();
    const caller = { process: this.processId, leaseUs, notAfterUs: 0, timeUs: this.#serverUs?.() };
    const call = presenceCallOf(caller, this.#keys.presence);
    const reply = await this.#connection.call(this.#keys.presence, () => call, BUDGET_SCRIPT);
    this.#processes = Math.max(1, readReply(reply).processes);
  }
}

/** DNS has no such host name. If DNS cannot be reached, the code is another one. */
function isUnknownName({ cause }: StoreError): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOTFOUND";
}

function toStoreError(error: unknown): StoreError {
  return error instanceof StoreError
    ? error
    : new StoreError(`redis: unexpected reply: ${messageOf(error)}`, { cause: error });
}

function unlimited({ most }: LeaseRequest): LeaseReply {
  return { kind: "granted", units: most, isStricter: false };
}
