import type { ProbePermissions } from "../breaker/breaker-change.ts";
import type { AllowRequest, Breakers } from "../breaker/breakers.ts";
import type { StoreError } from "../errors.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { BreakerSync } from "./breaker-sync.ts";
import { OrderWatch } from "./order-watch.ts";
import { awayText, backText, type StoreAway } from "./store-outage.ts";

/** Notifications that have ended are requested again after this, with the next call. */
const LISTEN_US = 1_000_000;

export interface SharedBreakersDeps {
  readonly store: Store;
  readonly breakers: Breakers;
  readonly time: Time;
  /** Called with one sentence when the store goes away, and when it is back. */
  readonly warn: (message: string) => void;
}

/**
 * Shares the breakers of a `BreakerRegistry`, which has no gate: changes are published when they happen, and records
 * are read before a call that can wait for them, or after one that cannot.
 */
export class SharedBreakers {
  readonly #store: Store;
  readonly #breakers: Breakers;
  readonly #time: Time;
  readonly #warn: (message: string) => void;
  readonly #sync: BreakerSync;
  readonly #orders: OrderWatch;
  #isServing = false;
  #isClosed = false;
  #awaySinceUs: number | undefined;
  #wasReached = false;
  /** Set if the store was never reached and no retry can succeed. */
  #permanentError: StoreError | undefined;
  #listenedUs = Number.NEGATIVE_INFINITY;
  /** Ends when the orders were first read: from then on the process applies each new one. */
  #started: Promise<void> | undefined;

  constructor({ store, breakers, time, warn }: SharedBreakersDeps) {
    this.#store = store;
    this.#breakers = breakers;
    this.#time = time;
    this.#warn = warn;
    const wake = () => this.#serve();
    this.#sync = new BreakerSync(store, breakers, time, wake);
    this.#orders = new OrderWatch({
      store,
      refresh: names => this.#sync.readAll(names),
      isShadow: () => false,
      onApplied: () => undefined,
    });
    breakers.watch(wake);
  }

  get probes(): ProbePermissions | undefined {
    return this.#isClosed ? undefined : this.#sync;
  }

  /**
   * Reads what the peers know about the request, and waits for their reply if it needs their permission to probe. If the
   * store is away, only what this process knows decides. Rejects with a StoreError if the store can never work.
   */
  async refresh(request: AllowRequest): Promise<void> {
    if (this.#isClosed) return;
    this.#listen();
    // Records are read after the orders, so that no order is given between the two reads and missed.
    await this.#started;
    await this.#refreshed(this.#sync.refreshBefore(request, undefined));
    for (;;) {
      const denial = this.#breakers.check(request, this.probes);
      if (denial?.isProbePending !== true) return;
      await this.#refreshed(this.#sync.refreshBefore(request, denial));
    }
  }

  /** The same for a request that does not wait: the records that are read apply to the next request. */
  refreshLater(request: AllowRequest): void {
    if (this.#isClosed) return;
    this.#listen();
    void this.#sync.refreshBefore(request, undefined);
  }

  /** Publishes pending changes and closes the store. Afterwards the breakers are those of this process alone. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#orders.stop();
    await this.#sync.close();
    await this.#store.close();
  }

  async #refreshed(reading: Promise<void> | undefined): Promise<void> {
    await reading;
    if (this.#permanentError !== undefined) throw this.#permanentError;
    this.#wasReached ||= reading !== undefined && this.#awaySinceUs === undefined;
  }

  /** Listens for orders from the first request on, and again if the notifications have ended. */
  #listen(): void {
    const nowUs = this.#time.monotonicUs();
    if (nowUs - this.#listenedUs < LISTEN_US) return;
    this.#listenedUs = nowUs;
    const listening = this.#orders.ensureListening();
    this.#started ??= listening;
  }

  /** Changes that occur while the loop runs are served by the same loop, as in the gate. */
  #serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      for (;;) {
        const changes = this.#breakers.takeChanges();
        if (!this.#isClosed) this.#sync.publish(changes);
        const ofPeers = this.#sync.takeChanges();
        for (const change of ofPeers) if (change.kind === "store") this.#storeChanged(change.away);
        if (changes.length === 0 && ofPeers.length === 0) return;
      }
    } finally {
      this.#isServing = false;
    }
  }

  #storeChanged(away: StoreAway | undefined): void {
    if (this.#isClosed) return;
    const { emitter } = this.#breakers;
    const nowUs = this.#time.monotonicUs();
    if (away === undefined) {
      const awayMs = (nowUs - (this.#awaySinceUs ?? nowUs)) / 1000;
      this.#awaySinceUs = undefined;
      this.#permanentError = undefined;
      emitter.emit({ event_type: "store_back", away_ms: awayMs });
      this.#warn(backText(awayMs));
      return;
    }
    const { processes, error } = away;
    this.#awaySinceUs = nowUs;
    if (error.isPermanent && !this.#wasReached) this.#permanentError = error;
    emitter.emit({ event_type: "store_away", processes, mode: "share", message: error.message });
    this.#warn(awayText(away));
  }
}
