import { EvictingMap } from "../core/evicting-map.ts";
import { shiftInstants } from "../stores/records.ts";
import type { RecordStore } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

/** A kind of record that processes share. */
export interface RecordKind<Value> {
  /** What a process knows of a record before it was ever written. */
  readonly empty: Value;
  /** Until when the store keeps a record, on the same clock as its instants. */
  readonly expiryUs: (record: Value, nowUs: number) => number;
  /**
   * Adds to `record` what it must not lose and `known` still has; returns `record` itself if nothing is missing. The
   * result is also written to the store. @default nothing is added
   */
  readonly restore?: ((record: Value, known: Value) => Value) | undefined;
}

/**
 * Receives a record as it is in the store, and as this process knew it before, and the time by the clock of the store.
 * All instants are in the clock of this process. Called at the moment at which the record becomes fresh, so that no
 * decision uses a fresh record that is not applied.
 */
export type ApplyRecord<Value> = (record: Value, known: Value, storeUs: number) => void;

/**
 * A change of a record, computed from the record in the store. `nowUs` is the time by the clock of the store. `storeUs`
 * converts an instant of this process to that clock, because a step may run long after the event that it reports. The
 * result is never too early. It is too late by at most the time that the message takes to the store.
 */
export type RecordStep<Value> = (record: Value, nowUs: number, storeUs: (localUs: number) => number) => Value;

/** A record is read again before a request if it is older than this. */
const FRESH_US = 25_000;
/** With a slow store a record is fresh for this many round trips, so that requests do not wait for a read each time. */
const FRESH_ROUND_TRIPS = 2;
/** Upper bound of the round trip in that calculation, so that one very late reply does not keep records for long. */
const ROUND_TRIP_US_MAX = 200_000;
/** Records that are cached even if they could be evicted: an evicted one costs a read of the store. */
const MIN_CACHED = 1024;

interface CachedRecord<Value> {
  record: Value;
  readUs: number;
  pendingReads: number;
  pendingWrites: number;
  /** Ends with the last write so far, even if it failed. */
  writing: Promise<unknown>;
}

/**
 * Records in the shared store, as this process has last read them. A change notifies no other process: a process
 * writes its changes at once, and reads a record before it decides by the record, unless the last read was a moment ago.
 */
export class PeerRecords<Value> {
  readonly #store: RecordStore;
  readonly #time: Time;
  readonly #kind: RecordKind<Value>;
  readonly #cache: EvictingMap<CachedRecord<Value>>;
  readonly #pending = new Set<Promise<unknown>>();
  /** Duration of the last read. */
  #roundTripUs = 0;

  constructor(store: RecordStore, time: Time, kind: RecordKind<Value>) {
    this.#store = store;
    this.#time = time;
    this.#kind = kind;
    this.#cache = new EvictingMap(
      ({ readUs, pendingReads, pendingWrites, record }) =>
        pendingReads + pendingWrites === 0 && !this.#isFresh(readUs) && kind.expiryUs(record, 0) < time.monotonicUs(),
      MIN_CACHED,
    );
  }

  /** Whether the record was read a moment ago. */
  isFresh(name: string): boolean {
    const cached = this.#cache.get(name);
    return cached !== undefined && this.#isFresh(cached.readUs);
  }

  /** How early the record of a request should be read before it is sent: one round trip if the store is slow, else 0. */
  get readAheadUs(): number {
    return this.#roundTripUs > FRESH_US ? this.#roundTripUs : 0;
  }

  /** The records of which this process knows something that a store without data would have lost. */
  restorable(): readonly string[] {
    const { empty, expiryUs, restore } = this.#kind;
    if (restore === undefined) return [];
    const nowUs = this.#time.monotonicUs();
    return Array.from(this.#cache.entries()).flatMap(([name, { record }]) =>
      expiryUs(record, 0) > nowUs && restore(empty, record) !== empty ? [name] : [],
    );
  }

  /** Whether the record should be read now if the store is slow, so that it is still fresh when the request is sent. */
  isAgeing(name: string): boolean {
    const { readUs } = this.#cached(name);
    return this.readAheadUs > 0 && this.#time.monotonicUs() - readUs >= this.readAheadUs / 2;
  }

  /** The record as this process has last read it. */
  known(name: string): Value {
    return this.#cached(name).record;
  }

  /**
   * Reads a record and applies it, if the store has it. If writes of this process are pending, their result is applied
   * instead.
   */
  async read(name: string, apply?: ApplyRecord<Value>): Promise<void> {
    const cached = this.#cached(name);
    const startedUs = this.#time.monotonicUs();
    cached.pendingReads += 1;
    try {
      // Read after our own pending writes, so that a process never applies its own stale record.
      await cached.writing;
      const { record, nowUs } = await this.#store.read<Value>(name);
      this.#roundTripUs = Math.min(ROUND_TRIP_US_MAX, this.#time.monotonicUs() - startedUs);
      this.#keep(name, cached, record, nowUs, apply);
    } finally {
      cached.pendingReads -= 1;
    }
  }

  /** Changes a record. Writes of one record run one after the other. The result is applied as by `read`. */
  write(name: string, step: RecordStep<Value>, apply?: ApplyRecord<Value>): Promise<void> {
    const cached = this.#cached(name);
    const writing = this.#writeAfter(cached.writing, name, cached, step, apply);
    const ended: Promise<unknown> = writing.catch(() => undefined).then(() => this.#pending.delete(ended));
    cached.writing = ended;
    this.#pending.add(ended);
    return writing;
  }

  /** Resolves when all pending writes have ended, even if they failed. */
  async flush(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #writeAfter(
    previous: Promise<unknown>,
    name: string,
    cached: CachedRecord<Value>,
    step: RecordStep<Value>,
    apply: ApplyRecord<Value> | undefined,
  ): Promise<void> {
    const { empty, expiryUs } = this.#kind;
    cached.pendingWrites += 1;
    await previous;
    const sentUs = this.#time.monotonicUs();
    const changed = await this.#store
      .change<Value, { readonly next: Value; readonly nowUs: number }>(name, ({ record = empty, nowUs }) => {
        const next = step(record, nowUs, localUs => localUs + nowUs - sentUs);
        const result = { next, nowUs };
        return next === record ? { result } : { record: { next, keepUntilUs: expiryUs(next, nowUs) }, result };
      })
      .finally(() => {
        cached.pendingWrites -= 1;
      });
    this.#keep(name, cached, changed.next === empty ? undefined : changed.next, changed.nowUs, apply);
  }

  #keep(
    name: string,
    cached: CachedRecord<Value>,
    record: Value | undefined,
    storeUs: number,
    apply: ApplyRecord<Value> | undefined,
  ): void {
    // The record does not contain our pending writes yet. The result of the last write will.
    if (cached.pendingWrites > 0) return;
    cached.readUs = this.#time.monotonicUs();
    const { empty, expiryUs, restore } = this.#kind;
    const known = cached.record;
    const isKept = expiryUs(known, 0) > cached.readUs;
    // From the clock of the store to that of this process.
    const stored = record === undefined ? empty : shiftInstants(record, cached.readUs - storeUs);
    const restored = isKept && restore !== undefined ? restore(stored, known) : stored;
    if (restored !== stored && restore !== undefined)
      this.write(name, (next, nowUs) => restore(next, shiftInstants(restored, nowUs - this.#time.monotonicUs()))).catch(
        // The next read finds again that the store lacks this state, and writes it again.
        () => undefined,
      );
    // No record: nothing was ever written, or the store has lost it. What this process knows stays.
    if (record === undefined) return;
    cached.record = restored;
    apply?.(restored, known, storeUs);
  }

  #cached(name: string): CachedRecord<Value> {
    const cached = this.#cache.get(name);
    if (cached !== undefined) return cached;
    const made: CachedRecord<Value> = {
      record: this.#kind.empty,
      readUs: Number.NEGATIVE_INFINITY,
      pendingReads: 0,
      pendingWrites: 0,
      writing: Promise.resolve(),
    };
    this.#cache.add(name, made);
    return made;
  }

  #isFresh(readUs: number): boolean {
    return this.#time.monotonicUs() - readUs < Math.max(FRESH_US, FRESH_ROUND_TRIPS * this.#roundTripUs);
  }
}
