import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  clearBreakerRecord,
  closeCircuit,
  EMPTY_BREAKER_RECORD,
  endServerCooldown,
  leaseProbe,
  openCircuit,
  returnProbeLease,
  setCooldown,
} from "../core/breaker/breaker-record.ts";
import { EvictingMap } from "../core/evicting-map.ts";
import type { StoreError } from "../errors.ts";
import type { BreakerRecordName } from "../stores/record-names.ts";
import { shiftInstants } from "../stores/records.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

export interface ProbeRequest {
  readonly id: string;
  /** Most probes of the circuit that all processes together may have in flight. */
  readonly trialCalls: number;
  readonly leaseUs: number;
}

/** A record as it was read, and as this process knew it before. All instants are in the clock of this process. */
export interface PeerRecordChange {
  readonly recordName: BreakerRecordName;
  readonly host: BreakerRecord;
  readonly known: BreakerRecord;
}

export interface PeerBreakersCallbacks {
  /** A record was read or written. */
  readonly onRecord: (change: PeerRecordChange) => void;
  readonly onStoreReached: () => void;
  readonly onStoreError: (error: StoreError) => void;
}

/** A record is read again before a request if it is older than this. */
const FRESH_US = 25_000;
/** With a slow store a record is fresh for this many round trips, so that requests do not wait for a read each time. */
const FRESH_ROUND_TRIPS = 2;
/** Upper bound of the round trip in that calculation, so that one very late reply does not keep records for long. */
const ROUND_TRIP_US_MAX = 200_000;
/** Records that are cached even if they could be evicted: an evicted one costs a read of the store. */
const MIN_CACHED = 1024;

interface WriteResult {
  readonly next: BreakerRecord;
  readonly nowUs: number;
}

interface CachedRecord {
  host: BreakerRecord;
  readUs: number;
  /** The read in flight. */
  reading: Promise<void> | undefined;
  /** Ends with the last write so far. */
  writing: Promise<void>;
  pendingWrites: number;
}

/**
 * Breaker records of hosts and resolvers in the shared store. Processes do not notify each other: each writes a change
 * at once, and reads a record before it sends a request, unless it has read it a moment ago.
 */
export class PeerBreakers {
  readonly #store: Store;
  readonly #time: Time;
  readonly #callbacks: PeerBreakersCallbacks;
  readonly #cache: EvictingMap<CachedRecord>;
  readonly #pending = new Set<Promise<void>>();
  #probes = 0;
  /** Duration of the last read. */
  #roundTripUs = 0;

  constructor(store: Store, time: Time, callbacks: PeerBreakersCallbacks) {
    this.#store = store;
    this.#time = time;
    this.#callbacks = callbacks;
    this.#cache = new EvictingMap(
      ({ readUs, reading, host }) =>
        reading === undefined && !this.#isFresh(readUs) && breakerRecordExpiryUs(host, 0) < time.monotonicUs(),
      MIN_CACHED,
    );
  }

  /** Whether the record was read a moment ago. */
  isRecordFresh(recordName: BreakerRecordName): boolean {
    const known = this.#cache.get(recordName);
    return known !== undefined && this.#isFresh(known.readUs);
  }

  /** Reads a record. Never rejects: a failure of the store is reported to `onStoreError`. */
  refresh(recordName: BreakerRecordName): Promise<void> {
    const known = this.#cached(recordName);
    // Read after our own pending writes, so that a process never applies its own stale record.
    const startedUs = this.#time.monotonicUs();
    known.reading ??= known.writing
      .then(() => this.#store.read<BreakerRecord>(recordName))
      .then(
        ({ record, nowUs }) => {
          this.#roundTripUs = Math.min(ROUND_TRIP_US_MAX, this.#time.monotonicUs() - startedUs);
          this.#apply(recordName, known, record, nowUs);
        },
        error => this.#callbacks.onStoreError(error),
      )
      .finally(() => {
        known.reading = undefined;
      });
    return known.reading;
  }

  cooled(
    recordName: BreakerRecordName,
    part: "serverCooldown" | "operatorCooldown",
    untilUs: number,
    reason: string,
  ): void {
    const leftUs = untilUs - this.#time.monotonicUs();
    this.#write(recordName, (host, nowUs) => setCooldown(host, part, { untilUs: nowUs + leftUs, reason }, nowUs));
  }

  cooldownEnded(recordName: BreakerRecordName): void {
    const { serverCooldown } = this.#cached(recordName).host;
    this.#write(recordName, (host, nowUs) => endServerCooldown(host, serverCooldown.serial, nowUs));
  }

  hostReset(recordName: BreakerRecordName): Promise<void> {
    return this.#write(recordName, clearBreakerRecord);
  }

  opened(recordName: BreakerRecordName, circuit: string, untilUs: number, reopened: number): void {
    const leftUs = untilUs - this.#time.monotonicUs();
    this.#write(recordName, (host, nowUs) => openCircuit(host, circuit, { untilUs: nowUs + leftUs, reopened }, nowUs));
  }

  closed(recordName: BreakerRecordName, circuit: string, probe: string): void {
    this.#write(recordName, (host, nowUs) => closeCircuit(host, circuit, probe, nowUs));
  }

  probeReturned(recordName: BreakerRecordName, circuit: string, probe: string): void {
    this.#write(recordName, (host, nowUs) => returnProbeLease(host, circuit, probe, nowUs));
  }

  /** An id that is unique among all processes. */
  newProbeId(): string {
    this.#probes += 1;
    return `${this.#store.processId} ${this.#probes}`;
  }

  /** Leases a probe among all processes. True if it may be sent, also when the store is away. */
  async requestProbe(recordName: BreakerRecordName, circuit: string, probe: ProbeRequest): Promise<boolean> {
    const { id, trialCalls, leaseUs } = probe;
    let isRefused = false;
    await this.#write(recordName, (host, nowUs) => {
      const next = leaseProbe(host, circuit, { id, expiresUs: nowUs + leaseUs }, trialCalls, nowUs);
      isRefused = next === host;
      return next;
    });
    return !isRefused;
  }

  /** Resolves when all pending writes have ended, also if they failed. */
  async flush(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Writes of one record run one after the other. Resolves when the write has ended, also if it failed. */
  #write(recordName: BreakerRecordName, step: (host: BreakerRecord, nowUs: number) => BreakerRecord): Promise<void> {
    const known = this.#cached(recordName);
    known.pendingWrites += 1;
    const writing = known.writing
      .then(() =>
        this.#store.change<BreakerRecord, WriteResult>(recordName, ({ record = EMPTY_BREAKER_RECORD, nowUs }) => {
          const next = step(record, nowUs);
          const result = { next, nowUs };
          return next === record
            ? { result }
            : { record: { next, keepUntilUs: breakerRecordExpiryUs(next, nowUs) }, result };
        }),
      )
      .then(
        ({ next, nowUs }) => {
          known.pendingWrites -= 1;
          this.#apply(recordName, known, next === EMPTY_BREAKER_RECORD ? undefined : next, nowUs);
        },
        error => {
          known.pendingWrites -= 1;
          this.#callbacks.onStoreError(error);
        },
      );
    known.writing = writing;
    this.#pending.add(writing);
    void writing.then(() => this.#pending.delete(writing));
    return writing;
  }

  #apply(recordName: BreakerRecordName, known: CachedRecord, record: BreakerRecord | undefined, storeUs: number): void {
    this.#callbacks.onStoreReached();
    // The record does not contain our pending writes yet. The result of the last write will.
    if (known.pendingWrites > 0) return;
    known.readUs = this.#time.monotonicUs();
    // No record: nothing was ever written, or the store has lost it. The local state stays.
    if (record === undefined) return;
    const before = known.host;
    known.host = this.#toLocalClock(record, storeUs);
    this.#callbacks.onRecord({ recordName, host: known.host, known: before });
  }

  /** Converts instants from the clock of the store to that of this process. */
  #toLocalClock(host: BreakerRecord, storeUs: number): BreakerRecord {
    return shiftInstants(host, this.#time.monotonicUs() - storeUs);
  }

  #cached(recordName: BreakerRecordName): CachedRecord {
    const known = this.#cache.get(recordName);
    if (known !== undefined) return known;
    const made: CachedRecord = {
      host: EMPTY_BREAKER_RECORD,
      readUs: Number.NEGATIVE_INFINITY,
      reading: undefined,
      writing: Promise.resolve(),
      pendingWrites: 0,
    };
    this.#cache.add(recordName, made);
    return made;
  }

  #isFresh(readUs: number): boolean {
    return this.#time.monotonicUs() - readUs < Math.max(FRESH_US, FRESH_ROUND_TRIPS * this.#roundTripUs);
  }
}
