import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { StoreError } from "../errors.ts";
import type { RoleBudget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { type BreakerSync, recordNameOf } from "./breaker-sync.ts";
import { type BreakerRecordName, PeerBreakers } from "./peer-breakers.ts";

export interface RecordFreshnessCallbacks {
  /** There is word from others for those who wait in this lane. */
  readonly heard: (roleBudget: RoleBudget) => void;
  /** The store is away: each process is on its own. Undefined when it is back. */
  readonly changed: (away: StoreError | undefined) => void;
  /** Whom somebody waits for, cut off. */
  readonly blockers: () => Iterable<Denial["blocker"]>;
}

/** Those who wait for a host that is cut off look so often whether others have found it well again. */
const POLL_MS = 500;
/** A store that was away is not asked before this is over. */
const RETRY_US = 1_000_000;

/** Sees to it that nobody goes, and nobody is sent away, on old news about a host. */
export class RecordFreshness {
  readonly #peerBreakers: PeerBreakers;
  readonly #sync: BreakerSync;
  readonly #time: Time;
  readonly #callbacks: RecordFreshnessCallbacks;
  readonly #refreshing = new Set<RoleBudget>();
  #pollTimer: Timer | undefined;
  #isAway = false;
  #retryUs = 0;

  constructor(store: Store, breakers: BreakerRegistry, time: Time, callbacks: RecordFreshnessCallbacks) {
    this.#time = time;
    this.#callbacks = callbacks;
    this.#peerBreakers = new PeerBreakers(store, time, {
      news: news => this.#sync.apply(news),
      reached: () => this.#reached(),
      failed: error => this.#failed(error),
    });
    this.#sync = breakers.join(this.#peerBreakers);
  }

  isFresh(call: EntryRequest): boolean {
    return (
      this.#isInRetryPause || recordNamesOf(call).every(recordName => this.#peerBreakers.isRecordFresh(recordName))
    );
  }

  /** Whether a lane is about to hear of what it waits for. */
  isRefreshing(roleBudget: RoleBudget): boolean {
    return this.#refreshing.has(roleBudget);
  }

  /** For somebody whose turn it is. False means that it is being looked at; the ears hear when that is done. */
  ensureFresh(call: EntryRequest, roleBudget: RoleBudget): boolean {
    if (this.isFresh(call)) return true;
    // A lane hears once of what it waits for, however often it was tried meanwhile.
    if (this.#refreshing.has(roleBudget)) return false;
    this.#refreshing.add(roleBudget);
    void this.refresh(call).then(() => {
      this.#refreshing.delete(roleBudget);
      this.#callbacks.heard(roleBudget);
    });
    return false;
  }

  async refresh(call: EntryRequest): Promise<void> {
    await Promise.all(recordNamesOf(call).map(recordName => this.#peerBreakers.refresh(recordName)));
  }

  /** What there is to hear before somebody may be told no, or goes without asking; undefined when there is nothing. */
  refreshBefore(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return denial?.probeReply ?? (this.isFresh(call) ? undefined : this.refresh(call));
  }

  /** Somebody waits for a host that is cut off. */
  pollBlockers(): void {
    this.#pollTimer ??= this.#time.setTimer(POLL_MS, () => {
      this.#pollTimer = undefined;
      const recordNames = new Set(Array.from(this.#callbacks.blockers(), recordNameOfBlocker));
      if (recordNames.size === 0) return;
      this.pollBlockers();
      if (!this.#isInRetryPause) for (const recordName of recordNames) void this.#peerBreakers.refresh(recordName);
    });
  }

  /** When others know what this process knows. */
  async close(): Promise<void> {
    this.#pollTimer?.cancel();
    await this.#peerBreakers.flush();
  }

  get #isInRetryPause(): boolean {
    return this.#isAway && this.#time.monotonicUs() < this.#retryUs;
  }

  #failed(error: StoreError): void {
    this.#retryUs = this.#time.monotonicUs() + RETRY_US;
    if (this.#isAway) return;
    this.#isAway = true;
    this.#callbacks.changed(error);
  }

  #reached(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#callbacks.changed(undefined);
    this.#sync.republish();
  }
}

function recordNamesOf({ host, resolver }: EntryRequest): readonly BreakerRecordName[] {
  return resolver === undefined ? [`host ${host}`] : [`host ${host}`, `resolver ${resolver}`];
}

function recordNameOfBlocker(blocker: Denial["blocker"]): BreakerRecordName {
  return "circuits" in blocker ? `host ${blocker.name}` : recordNameOf(blocker);
}
