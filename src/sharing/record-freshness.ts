import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { StoreError } from "../errors.ts";
import type { Lane } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { type SharedCircuits, subjectOf } from "./breaker-sync.ts";
import { Fleet, type Subject } from "./peer-breakers.ts";

export interface OutlookEars {
  /** There is word from others for those who wait in this lane. */
  readonly heard: (lane: Lane) => void;
  /** The store is away: each process is on its own. Undefined when it is back. */
  readonly changed: (away: StoreError | undefined) => void;
  /** Whom somebody waits for, cut off. */
  readonly blockers: () => Iterable<Denial["blocker"]>;
}

/** Those who wait for a host that is cut off look so often whether others have found it well again. */
const WATCH_MS = 500;
/** A store that was away is not asked before this is over. */
const RETRY_US = 1_000_000;

/** Sees to it that nobody goes, and nobody is sent away, on old news about a host. */
export class Outlook {
  readonly #fleet: Fleet;
  readonly #circuits: SharedCircuits;
  readonly #time: Time;
  readonly #ears: OutlookEars;
  readonly #listening = new Set<Lane>();
  #watch: Timer | undefined;
  #isAway = false;
  #retryUs = 0;

  constructor(store: Store, breakers: BreakerRegistry, time: Time, ears: OutlookEars) {
    this.#time = time;
    this.#ears = ears;
    this.#fleet = new Fleet(store, time, {
      news: news => this.#circuits.hear(news),
      reached: () => this.#reached(),
      failed: error => this.#failed(error),
    });
    this.#circuits = breakers.join(this.#fleet);
  }

  isClear(call: EntryRequest): boolean {
    return this.#isGivenUp || subjectsOf(call).every(subject => this.#fleet.hasHeard(subject));
  }

  /** Whether a lane is about to hear of what it waits for. */
  isLooking(lane: Lane): boolean {
    return this.#listening.has(lane);
  }

  /** For somebody whose turn it is. False means that it is being looked at; the ears hear when that is done. */
  clears(call: EntryRequest, lane: Lane): boolean {
    if (this.isClear(call)) return true;
    // A lane hears once of what it waits for, however often it was tried meanwhile.
    if (this.#listening.has(lane)) return false;
    this.#listening.add(lane);
    void this.look(call).then(() => {
      this.#listening.delete(lane);
      this.#ears.heard(lane);
    });
    return false;
  }

  async look(call: EntryRequest): Promise<void> {
    await Promise.all(subjectsOf(call).map(subject => this.#fleet.look(subject)));
  }

  /** What there is to hear before somebody may be told no, or goes without asking; undefined when there is nothing. */
  before(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return denial?.answered ?? (this.isClear(call) ? undefined : this.look(call));
  }

  /** Somebody waits for a host that is cut off. */
  watch(): void {
    this.#watch ??= this.#time.setTimer(WATCH_MS, () => {
      this.#watch = undefined;
      const subjects = new Set(Array.from(this.#ears.blockers(), subjectOfBlocker));
      if (subjects.size === 0) return;
      this.watch();
      if (!this.#isGivenUp) for (const subject of subjects) void this.#fleet.look(subject);
    });
  }

  /** When others know what this process knows. */
  async close(): Promise<void> {
    this.#watch?.cancel();
    await this.#fleet.settled();
  }

  get #isGivenUp(): boolean {
    return this.#isAway && this.#time.monotonicUs() < this.#retryUs;
  }

  #failed(error: StoreError): void {
    this.#retryUs = this.#time.monotonicUs() + RETRY_US;
    if (this.#isAway) return;
    this.#isAway = true;
    this.#ears.changed(error);
  }

  #reached(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#ears.changed(undefined);
    this.#circuits.repeat();
  }
}

function subjectsOf({ host, resolver }: EntryRequest): readonly Subject[] {
  return resolver === undefined ? [`host ${host}`] : [`host ${host}`, `resolver ${resolver}`];
}

function subjectOfBlocker(blocker: Denial["blocker"]): Subject {
  return "circuits" in blocker ? `host ${blocker.name}` : subjectOf(blocker);
}
