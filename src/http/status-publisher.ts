import { hostname } from "node:os";
import { basename } from "node:path";
import { commonName } from "../policy/partition-name.ts";
import type { PublishedPolicy } from "../policy/published-policy.ts";
import { withoutTier } from "../policy/service-name.ts";
import { OrderWatch, type OrderWatchDeps } from "../sharing/order-watch.ts";
import {
  POLICY_PREFIX,
  POLICY_RECORD_US,
  PROCESS_PREFIX,
  PROCESS_RECORD_US,
  type ProcessRecord,
} from "../stores/process-record.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import type { HubSnapshot } from "./hub.ts";
import { isWorthShowing } from "./process-row.ts";

/** The part of a hub's snapshot that is written to the store. */
export interface PublishedStatus extends Pick<HubSnapshot, "calls" | "inFlight" | "waiting" | "keys" | "hosts"> {
  /** The resolvers that have been used. Absent in records of older versions. */
  readonly resolvers?: readonly string[];
  /** True if the process has more keys than are listed. */
  readonly isPartial?: boolean;
  /** Requests granted and refused so far, over all keys. Absent in records of older versions. */
  readonly granted?: number;
  readonly refused?: number;
  /** Whether the limits are shared with other processes, and not the breakers alone. Absent in records of older versions. */
  readonly sharesLimits?: boolean;
}

/** A policy, and when its record was written by the clock of the store. The time is absent in records of older versions. */
type WrittenPolicy = PublishedPolicy & { readonly writtenUs?: number };

const PUBLISH_INTERVAL_MS = 1000;
/** Many processes write less often, so that all of them together write at most a hundred records in a second (law S7). */
const INTERVAL_PER_PROCESS_MS = 10;
/** Well below the time for which a record is kept. */
const MAX_INTERVAL_MS = 20_000;
/** The first status is written soon, so that the commands find a process that has just started. */
const FIRST_STATUS_MS = 100;
/** Keys and hosts per record: a crawler has thousands. An operator's command can ask for others. */
const ROWS_MAX = 200;

export interface StatusPublisherDeps extends Omit<OrderWatchDeps, "onApplied"> {
  readonly time: Time;
  readonly snapshot: () => HubSnapshot;
  /** The resolvers that have been used. */
  readonly resolvers: () => Iterable<string>;
  readonly sharesLimits: boolean;
  /** The policy in force. `published` is undefined if it is too large. */
  readonly policy: () => { readonly configHash: string; readonly published: () => PublishedPolicy | undefined };
}

/**
 * Writes the hub's status to the shared store, for `docstokg limits`, `breaker` and `why` (law S6). It is written once a
 * second while calls are active, less often if more than a hundred processes share the store, and once more after the
 * last call has ended, and after the limits of a process that is still listed have changed. Requests never wait for it.
 * Failed writes are not repeated.
 */
export class StatusPublisher {
  readonly #store: Store;
  readonly #time: Time;
  readonly #snapshot: () => HubSnapshot;
  readonly #startedMs: number;
  readonly #orders: OrderWatch;
  readonly #resolvers: () => Iterable<string>;
  readonly #sharesLimits: boolean;
  readonly #policy: StatusPublisherDeps["policy"];
  #policyWritten: { readonly configHash: string; readonly atUs: number } | undefined;
  #hasStarted = false;
  #timer: Timer | undefined;
  #writtenUs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor({ store, time, snapshot, resolvers, sharesLimits, policy, ...orders }: StatusPublisherDeps) {
    this.#store = store;
    this.#resolvers = resolvers;
    this.#sharesLimits = sharesLimits;
    this.#policy = policy;
    this.#orders = new OrderWatch({ ...orders, store, onApplied: () => void this.#acknowledge() });
    this.#time = time;
    this.#snapshot = snapshot;
    this.#startedMs = time.wallMs();
  }

  /** Writes the status soon, and again at each interval while calls are active. */
  scheduleWrite(): void {
    if (this.#isClosed) return;
    const delayMs = this.#hasStarted ? this.#intervalMs : FIRST_STATUS_MS;
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      void this.#orders.ensureListening();
    }
    this.#timer ??= setUnreferencedTimer(this.#time, delayMs, () => {
      this.#timer = undefined;
      void this.#orders.ensureListening();
      const snapshot = this.#snapshot();
      if (snapshot.calls > 0) this.scheduleWrite();
      void this.#writePolicy();
      void this.#write(snapshot, PROCESS_RECORD_US);
    });
  }

  /**
   * Writes the status soon if the process is still listed: its limits have changed without a call, by a reload or by the
   * end of an order.
   */
  limitsChanged(): void {
    if (this.#time.monotonicUs() - this.#writtenUs < PROCESS_RECORD_US) this.scheduleWrite();
  }

  get #intervalMs(): number {
    const sharedMs = this.#store.processes * INTERVAL_PER_PROCESS_MS;
    return Math.max(PUBLISH_INTERVAL_MS, Math.min(MAX_INTERVAL_MS, sharedMs));
  }

  /** Writes the policy if it is new or may soon expire. Processes with the same policy share the record. */
  async #writePolicy(): Promise<void> {
    const { configHash, published } = this.#policy();
    const atUs = this.#time.monotonicUs();
    const written = this.#policyWritten;
    if (written?.configHash === configHash && atUs - written.atUs < POLICY_RECORD_US / 2) return;
    this.#policyWritten = { configHash, atUs };
    const next = published();
    if (next === undefined) return;
    await this.#store
      .change<WrittenPolicy, void>(POLICY_PREFIX + configHash, ({ record, nowUs }) => {
        // Of many processes that start together, each would write the same policy, and repeat its write after a conflict.
        const isRecent = record?.writtenUs !== undefined && nowUs - record.writtenUs < POLICY_RECORD_US / 4;
        if (isRecent) return { result: undefined };
        return {
          record: { next: { ...next, writtenUs: nowUs }, keepUntilUs: nowUs + POLICY_RECORD_US },
          result: undefined,
        };
      })
      .catch(() => {
        this.#policyWritten = undefined;
      });
  }

  /** Ends the publishing. The record expires at once, so the process is no longer listed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#orders.stop();
    this.#timer?.cancel();
    await this.#write(this.#snapshot(), 1);
  }

  /** Writes the status at once, so that the operator's command sees which orders this process has applied. */
  async #acknowledge(): Promise<void> {
    if (this.#isClosed) return;
    await this.#write(this.#snapshot(), PROCESS_RECORD_US);
    // A command that misses the signal reads the status when its time is over.
    await this.#store.signals?.send("acks").catch(() => undefined);
  }

  async #write(snapshot: HubSnapshot, keepUs: number): Promise<void> {
    this.#writtenUs = this.#time.monotonicUs();
    const next: ProcessRecord<PublishedStatus> = {
      pid: process.pid,
      machine: hostname(),
      program: basename(process.argv[1] ?? "node"),
      startedMs: this.#startedMs,
      writtenMs: this.#time.wallMs(),
      snapshot: {
        ...toPublishedStatus(snapshot, this.#resolvers(), this.#orders.hosts),
        sharesLimits: this.#sharesLimits,
      },
      configHash: this.#policy().configHash,
      orders: this.#orders.applied,
    };
    await this.#store
      .change(PROCESS_PREFIX + this.#store.processId, ({ nowUs }) => ({
        record: { next, keepUntilUs: nowUs + keepUs },
        result: undefined,
      }))
      // The gate reports a store that is unavailable.
      .catch(() => undefined);
  }
}

/** Keys and hosts that an operator has asked for come first, then the busiest ones. */
function toPublishedStatus(
  { calls, inFlight, waiting, keys, hosts }: HubSnapshot,
  resolvers: Iterable<string>,
  asked: ReadonlySet<string>,
): PublishedStatus {
  const rank = (name: string) => (asked.size > 0 && asked.has(withoutTier(commonName(name))) ? 1 : 0);
  const used = keys.filter(isWorthShowing).map(row => ({ row, rank: rank(row.key) }));
  const shown = used
    .sort((a, b) => b.rank - a.rank || b.row.waiting - a.row.waiting || b.row.acquired - a.row.acquired)
    .slice(0, ROWS_MAX)
    .map(({ row }) => row);
  const affected = hosts
    .filter(({ state, windowFailures }) => state !== "closed" || windowFailures > 0)
    .sort((a, b) => rank(b.host) - rank(a.host));
  return {
    calls,
    inFlight,
    waiting,
    keys: shown,
    hosts: affected.slice(0, ROWS_MAX),
    resolvers: [...resolvers].slice(0, ROWS_MAX),
    isPartial: used.length > shown.length,
    granted: keys.reduce((sum, { acquired, headSkipped }) => sum + acquired + headSkipped, 0),
    refused: keys.reduce((sum, { refused }) => sum + refused, 0),
  };
}
