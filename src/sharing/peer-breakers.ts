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
import { shiftInstants } from "../stores/records.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

/** Whom a note is about: `host api.example.org`, `resolver landing_page`. */
export type BreakerRecordName = `host ${string}` | `resolver ${string}`;

export interface ProbeRequest {
  readonly id: string;
  /** How many there may be. */
  readonly trialCalls: number;
  readonly leaseUs: number;
}

/** What others say of a subject, with all instants by this process's clock, and what was known of it before. */
export interface PeerRecordChange {
  readonly recordName: BreakerRecordName;
  readonly host: BreakerRecord;
  readonly known: BreakerRecord;
}

export interface PeerBreakersCallbacks {
  /** Others have something to say. */
  readonly news: (news: PeerRecordChange) => void;
  /** The store has answered; or it has failed. */
  readonly reached: () => void;
  readonly failed: (error: StoreError) => void;
}

/** What others say of a subject is no older than this when a request goes to it. */
const FRESH_US = 25_000;
/** But where it takes longer to ask, news is as fresh as it can be for so many trips. */
const FRESH_ROUND_TRIPS = 2;
/** A store that answers as late as that is not worth waiting for each time. */
const ROUND_TRIP_US_MAX = 200_000;
/** So many subjects are remembered anyway: forgetting one that comes again costs a look at the store. */
const MIN_CACHED = 1024;

interface WriteResult {
  readonly next: BreakerRecord;
  readonly nowUs: number;
}

interface CachedRecord {
  host: BreakerRecord;
  readUs: number;
  /** A look at the store, or something being said there. */
  reading: Promise<void> | undefined;
  writing: Promise<void>;
  /** What is yet to be said. */
  pendingWrites: number;
}

/**
 * What the processes that share a store tell one another about hosts and resolvers. Nobody is called: who is about to
 * send something looks, unless it has looked a moment ago, and what one process has found out it writes down at once.
 */
export class PeerBreakers {
  readonly #store: Store;
  readonly #time: Time;
  readonly #callbacks: PeerBreakersCallbacks;
  readonly #cache: EvictingMap<CachedRecord>;
  readonly #pending = new Set<Promise<void>>();
  #probes = 0;
  /** How long the last look has taken. */
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

  /** Whether a subject was looked at a moment ago. */
  isRecordFresh(recordName: BreakerRecordName): boolean {
    const known = this.#cache.get(recordName);
    return known !== undefined && this.#isFresh(known.readUs);
  }

  /** Looks at what others say. Never rejects: a store that is away is told to the ears. */
  refresh(recordName: BreakerRecordName): Promise<void> {
    const known = this.#cached(recordName);
    // After what this process has to say itself, so that it does not hear itself as it was before.
    const startedUs = this.#time.monotonicUs();
    known.reading ??= known.writing
      .then(() => this.#store.read<BreakerRecord>(recordName))
      .then(
        ({ record, nowUs }) => {
          this.#roundTripUs = Math.min(ROUND_TRIP_US_MAX, this.#time.monotonicUs() - startedUs);
          this.#apply(recordName, known, record, nowUs);
        },
        error => this.#callbacks.failed(error),
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

  /** A name for a probe that no other process uses. */
  newProbeId(): string {
    this.#probes += 1;
    return `${this.#store.processId} ${this.#probes}`;
  }

  /** Leave to probe, from all processes together. A store that is away has nothing against it. */
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

  /** When all that was to be said has been said, or could not be. */
  async flush(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** One after the other for each subject. Resolves when it is said, or cannot be. */
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
          this.#callbacks.failed(error);
        },
      );
    known.writing = writing;
    this.#pending.add(writing);
    void writing.then(() => this.#pending.delete(writing));
    return writing;
  }

  #apply(recordName: BreakerRecordName, known: CachedRecord, record: BreakerRecord | undefined, storeUs: number): void {
    this.#callbacks.reached();
    // It has more to say by now, which what it hears does not know of yet. The answer to the last word does.
    if (known.pendingWrites > 0) return;
    known.readUs = this.#time.monotonicUs();
    // Nothing there: nobody has had anything to say, or the store has lost it. Then what is known here counts.
    if (record === undefined) return;
    const before = known.host;
    known.host = this.#toLocalClock(record, storeUs);
    this.#callbacks.news({ recordName, host: known.host, known: before });
  }

  /** From the store's clock to this process's. */
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
