import {
  closeCircuit,
  cool,
  endCooldown,
  forgettableUs,
  forgive,
  openCircuit,
  returnProbe,
  type SharedHost,
  sendProbe,
  UNKNOWN_HOST,
} from "../core/breaker/breaker-record.ts";
import { ForgetfulMap } from "../core/evicting-map.ts";
import type { StoreError } from "../errors.ts";
import { shiftInstants } from "../stores/records.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

/** Whom a note is about: `host api.example.org`, `resolver landing_page`. */
export type Subject = `host ${string}` | `resolver ${string}`;

export interface ProbeWanted {
  readonly id: string;
  /** How many there may be. */
  readonly trialCalls: number;
  readonly leaseUs: number;
}

/** What others say of a subject, with all instants by this process's clock, and what was known of it before. */
export interface News {
  readonly subject: Subject;
  readonly host: SharedHost;
  readonly known: SharedHost;
}

export interface FleetEars {
  /** Others have something to say. */
  readonly news: (news: News) => void;
  /** The store has answered; or it has failed. */
  readonly reached: () => void;
  readonly failed: (error: StoreError) => void;
}

/** What others say of a subject is no older than this when a request goes to it. */
const FRESH_US = 25_000;
/** But where it takes longer to ask, news is as fresh as it can be for so many trips. */
const FRESH_TRIPS = 2;
/** A store that answers as late as that is not worth waiting for each time. */
const TRIP_US_MAX = 200_000;
/** So many subjects are remembered anyway: forgetting one that comes again costs a look at the store. */
const KEPT = 1024;

interface Said {
  readonly next: SharedHost;
  readonly nowUs: number;
}

interface Acquaintance {
  host: SharedHost;
  heardUs: number;
  /** A look at the store, or something being said there. */
  looking: Promise<void> | undefined;
  saying: Promise<void>;
  /** What is yet to be said. */
  words: number;
}

/**
 * What the processes that share a store tell one another about hosts and resolvers. Nobody is called: who is about to
 * send something looks, unless it has looked a moment ago, and what one process has found out it writes down at once.
 */
export class Fleet {
  readonly #store: Store;
  readonly #time: Time;
  readonly #ears: FleetEars;
  readonly #known: ForgetfulMap<Acquaintance>;
  readonly #pending = new Set<Promise<void>>();
  #probes = 0;
  /** How long the last look has taken. */
  #tripUs = 0;

  constructor(store: Store, time: Time, ears: FleetEars) {
    this.#store = store;
    this.#time = time;
    this.#ears = ears;
    this.#known = new ForgetfulMap(
      ({ heardUs, looking, host }) =>
        looking === undefined && !this.#isFresh(heardUs) && forgettableUs(host, 0) < time.monotonicUs(),
      KEPT,
    );
  }

  /** Whether a subject was looked at a moment ago. */
  hasHeard(subject: Subject): boolean {
    const known = this.#known.get(subject);
    return known !== undefined && this.#isFresh(known.heardUs);
  }

  /** Looks at what others say. Never rejects: a store that is away is told to the ears. */
  look(subject: Subject): Promise<void> {
    const known = this.#acquaintance(subject);
    // After what this process has to say itself, so that it does not hear itself as it was before.
    const startedUs = this.#time.monotonicUs();
    known.looking ??= known.saying
      .then(() => this.#store.read<SharedHost>(subject))
      .then(
        ({ note, nowUs }) => {
          this.#tripUs = Math.min(TRIP_US_MAX, this.#time.monotonicUs() - startedUs);
          this.#hear(subject, known, note, nowUs);
        },
        error => this.#ears.failed(error),
      )
      .finally(() => {
        known.looking = undefined;
      });
    return known.looking;
  }

  cooled(subject: Subject, part: "asked" | "ordered", untilUs: number, reason: string): void {
    const leftUs = untilUs - this.#time.monotonicUs();
    this.#say(subject, (host, nowUs) => cool(host, part, { untilUs: nowUs + leftUs, reason }, nowUs));
  }

  cooldownEnded(subject: Subject): void {
    const { asked } = this.#acquaintance(subject).host;
    this.#say(subject, (host, nowUs) => endCooldown(host, asked.serial, nowUs));
  }

  forgiven(subject: Subject): Promise<void> {
    return this.#say(subject, forgive);
  }

  opened(subject: Subject, circuit: string, untilUs: number, reopened: number): void {
    const leftUs = untilUs - this.#time.monotonicUs();
    this.#say(subject, (host, nowUs) => openCircuit(host, circuit, { untilUs: nowUs + leftUs, reopened }, nowUs));
  }

  closed(subject: Subject, circuit: string, probe: string): void {
    this.#say(subject, (host, nowUs) => closeCircuit(host, circuit, probe, nowUs));
  }

  probeReturned(subject: Subject, circuit: string, probe: string): void {
    this.#say(subject, (host, nowUs) => returnProbe(host, circuit, probe, nowUs));
  }

  /** A name for a probe that no other process uses. */
  nameProbe(): string {
    this.#probes += 1;
    return `${this.#store.party} ${this.#probes}`;
  }

  /** Leave to probe, from all processes together. A store that is away has nothing against it. */
  async takeProbe(subject: Subject, circuit: string, probe: ProbeWanted): Promise<boolean> {
    const { id, trialCalls, leaseUs } = probe;
    let isRefused = false;
    await this.#say(subject, (host, nowUs) => {
      const next = sendProbe(host, circuit, { id, expiresUs: nowUs + leaseUs }, trialCalls, nowUs);
      isRefused = next === host;
      return next;
    });
    return !isRefused;
  }

  /** When all that was to be said has been said, or could not be. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** One after the other for each subject. Resolves when it is said, or cannot be. */
  #say(subject: Subject, step: (host: SharedHost, nowUs: number) => SharedHost): Promise<void> {
    const known = this.#acquaintance(subject);
    known.words += 1;
    const saying = known.saying
      .then(() =>
        this.#store.change<SharedHost, Said>(subject, ({ note = UNKNOWN_HOST, nowUs }) => {
          const next = step(note, nowUs);
          const result = { next, nowUs };
          return next === note ? { result } : { note: { next, keepUntilUs: forgettableUs(next, nowUs) }, result };
        }),
      )
      .then(
        ({ next, nowUs }) => {
          known.words -= 1;
          this.#hear(subject, known, next === UNKNOWN_HOST ? undefined : next, nowUs);
        },
        error => {
          known.words -= 1;
          this.#ears.failed(error);
        },
      );
    known.saying = saying;
    this.#pending.add(saying);
    void saying.then(() => this.#pending.delete(saying));
    return saying;
  }

  #hear(subject: Subject, known: Acquaintance, note: SharedHost | undefined, storeUs: number): void {
    this.#ears.reached();
    // It has more to say by now, which what it hears does not know of yet. The answer to the last word does.
    if (known.words > 0) return;
    known.heardUs = this.#time.monotonicUs();
    // Nothing there: nobody has had anything to say, or the store has lost it. Then what is known here counts.
    if (note === undefined) return;
    const before = known.host;
    known.host = this.#here(note, storeUs);
    this.#ears.news({ subject, host: known.host, known: before });
  }

  /** From the store's clock to this process's. */
  #here(host: SharedHost, storeUs: number): SharedHost {
    return shiftInstants(host, this.#time.monotonicUs() - storeUs);
  }

  #acquaintance(subject: Subject): Acquaintance {
    const known = this.#known.get(subject);
    if (known !== undefined) return known;
    const made: Acquaintance = {
      host: UNKNOWN_HOST,
      heardUs: Number.NEGATIVE_INFINITY,
      looking: undefined,
      saying: Promise.resolve(),
      words: 0,
    };
    this.#known.add(subject, made);
    return made;
  }

  #isFresh(heardUs: number): boolean {
    return this.#time.monotonicUs() - heardUs < Math.max(FRESH_US, FRESH_TRIPS * this.#tripUs);
  }
}
