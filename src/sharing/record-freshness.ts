import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import { breakersOf } from "../breaker/registry-breakers.ts";
import type { StoreError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { type BreakerRecordName, hostRecordName, resolverRecordName } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { BreakerSync, recordNameOf } from "./breaker-sync.ts";
import { PeerBreakers } from "./peer-breakers.ts";
import type { PeerChange, StoreAway } from "./peer-change.ts";

/** How often records are re-read while requests wait for a circuit or cooldown, which another process may end early. */
const POLL_MS = 500;
/** A store that is away is not asked again before this. */
const RETRY_US = 1_000_000;

/** Makes sure that no request is granted or refused by an outdated breaker record. */
export class RecordFreshness {
  readonly #peerBreakers: PeerBreakers;
  readonly #sync: BreakerSync;
  readonly #time: Time;
  readonly #wake: () => void;
  readonly #changes: PeerChange[] = [];
  readonly #refreshing = new Set<RoleBudget>();
  #pollTimer: Timer | undefined;
  #isPollDue = false;
  #isAway = false;
  #retryUs = 0;

  constructor(store: Store, breakers: BreakerRegistry, time: Time, wake: () => void) {
    this.#time = time;
    this.#wake = wake;
    this.#peerBreakers = new PeerBreakers(store, time, {
      onRecord: change => this.#sync.apply(change),
      onStoreReached: () => this.#reached(),
      onStoreError: error => this.#failed(error),
    });
    this.#sync = breakersOf(breakers).join(deps => new BreakerSync(this.#peerBreakers, deps));
  }

  isFresh(call: EntryRequest): boolean {
    return (
      this.#isInRetryPause || recordNamesOf(call).every(recordName => this.#peerBreakers.isRecordFresh(recordName))
    );
  }

  /** Whether the records for this role budget are being read. */
  isRefreshing(roleBudget: RoleBudget): boolean {
    return this.#refreshing.has(roleBudget);
  }

  /** As `isFresh`, for a request that has the turn. If false, the records are being read, and a change follows. */
  ensureFresh(call: EntryRequest, roleBudget: RoleBudget): boolean {
    if (this.isFresh(call)) return true;
    // One read per role budget, however often its first request is tried meanwhile.
    if (this.#refreshing.has(roleBudget)) return false;
    this.#refreshing.add(roleBudget);
    void this.refresh(call).then(() => {
      this.#refreshing.delete(roleBudget);
      this.#changes.push({ kind: "ready", roleBudget });
      this.#wake();
    });
    return false;
  }

  async refresh(call: EntryRequest): Promise<void> {
    await Promise.all(recordNamesOf(call).map(recordName => this.#peerBreakers.refresh(recordName)));
  }

  /**
   * The read that must end before the request is refused, or granted in shadow mode; undefined if the records are
   * fresh.
   */
  refreshBefore(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return denial?.probeReply ?? (this.isFresh(call) ? undefined : this.refresh(call));
  }

  /**
   * Re-reads the records of the circuits and cooldowns that requests wait for, every POLL_MS. `wake` is called when it
   * is to be called again.
   */
  poll(blockers: Iterable<Denial["blocker"]>): void {
    if (this.#pollTimer !== undefined) return;
    this.#pollTimer = this.#time.setTimer(POLL_MS, () => {
      this.#pollTimer = undefined;
      this.#isPollDue = true;
      this.#wake();
      this.#isPollDue = false;
    });
    if (!this.#isPollDue || this.#isInRetryPause) return;
    for (const recordName of new Set(Array.from(blockers, recordNameOfBlocker)))
      void this.#peerBreakers.refresh(recordName);
  }

  takeChanges(): readonly PeerChange[] {
    return this.#changes.splice(0);
  }

  /** Resolves when pending records are written. */
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
    this.#storeChanged({ processes: 1, error });
  }

  #reached(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#storeChanged(undefined);
    this.#sync.republish();
  }

  #storeChanged(away: StoreAway | undefined): void {
    this.#changes.push({ kind: "store", shares: "breakers", away });
    this.#wake();
  }
}

function recordNamesOf({ host, resolver }: EntryRequest): readonly BreakerRecordName[] {
  return resolver === undefined ? [hostRecordName(host)] : [hostRecordName(host), resolverRecordName(resolver)];
}

function recordNameOfBlocker(blocker: Denial["blocker"]): BreakerRecordName {
  return "circuits" in blocker ? hostRecordName(blocker.name) : recordNameOf(blocker);
}
