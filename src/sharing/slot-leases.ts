import {
  leaseSlots,
  type SharedSlots,
  type SlotReply,
  slotsExpiryUs,
  WAITING_TTL_US,
} from "../core/limits/shared-slots.ts";
import type { StoreError } from "../errors.ts";
import type { Budget } from "../limiter/budget.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { LEASE_MS, type Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import type { DeadProcesses } from "./dead-processes.ts";
import type { PeerChange } from "./peer-change.ts";

/** The store does not notify: the waiting process that gets the next free slot asks again after this. */
const RETRY_US = 100_000;
/** The others ask less often, the later they are, but often enough to keep their precedence. */
const RETRY_MAX_US = 0.8 * WAITING_TTL_US;
/** How long a leased slot is kept while its request waits for something else. */
const IDLE_MS = 250;

/** For how long a reply without a slot shows that the other processes have all of them. */
const KNOWN_US = 1_000_000;

type GivenSlots = Pick<SlotReply, "given" | "before">;

interface SlotLease {
  /** Slots leased to this process, including those of requests in flight. */
  leased: number;
  /** An exchange is due even before `notBeforeUs`: slots are to be returned, or the lease renewed. */
  isDue: boolean;
  wanted: number;
  isRequesting: boolean;
  notBeforeUs: number;
  /** Returns slots that are still unused after IDLE_MS. */
  idleTimer: Timer | undefined;
  /** Tries the waiting role budgets again at `notBeforeUs`. */
  retryTimer: Timer | undefined;
  readonly waiting: Set<RoleBudget>;
}

/**
 * Leases slots of budgets whose `max_concurrent` is shared by all processes (`shared: true`). A slot is leased before a
 * request is sent, and returned when the request has ended. The store then gives the slot to the waiting process with the
 * fewest slots. After each exchange it calls `wake`, and `takeChanges` says what has changed. While the store is away,
 * requests lease no slots.
 */
export class SlotLeases {
  readonly #store: Store;
  readonly #time: Time;
  readonly #dead: DeadProcesses;
  readonly #onReached: () => void;
  readonly #wake: () => void;
  readonly #changes: PeerChange[] = [];
  readonly #leases = new Map<Budget, SlotLease>();
  /** When the store has last given fewer slots than requested. */
  readonly #refusedUs = new WeakMap<Budget, number>();
  readonly #exchanges = new Set<Promise<void>>();
  #renewal: Timer | undefined;
  #isClosed = false;

  constructor(store: Store, time: Time, dead: DeadProcesses, onReached: () => void, wake: () => void) {
    this.#store = store;
    this.#time = time;
    this.#dead = dead;
    this.#onReached = onReached;
    this.#wake = wake;
  }

  /** Whether a slot is leased in every shared budget that applies. Does not ask the store. */
  has(roleBudget: RoleBudget): boolean {
    return this.missing(roleBudget) === undefined;
  }

  /** The first shared budget without a leased slot for another request; undefined if `has`. */
  missing(roleBudget: RoleBudget): Budget | undefined {
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      if (at.policy.sharesSlots && (this.#leases.get(at)?.leased ?? 0) <= at.inFlight) return at;
    }
    return undefined;
  }

  /**
   * The first shared budget that the other processes have the slots of, as a reply of the last second says; undefined if
   * there is none, or if it is not known. The store does not say when a slot becomes free.
   */
  takenByOthers(roleBudget: RoleBudget, nowUs: number): Budget | undefined {
    const missing = this.missing(roleBudget);
    const refusedUs = missing && this.#refusedUs.get(missing);
    return refusedUs !== undefined && nowUs - refusedUs < KNOWN_US ? missing : undefined;
  }

  /** As `has`, for a request that has the turn. Missing slots are requested, for `wanted` requests. */
  ensure(roleBudget: RoleBudget, wanted: number): boolean {
    const missing = this.missing(roleBudget);
    if (missing === undefined) return true;
    const lease = this.#leaseOf(missing);
    lease.waiting.add(roleBudget);
    const freeSlots = missing.policy.maxConcurrent - lease.leased;
    lease.wanted = Math.max(lease.wanted, Math.min(wanted, freeSlots));
    this.#scheduleExchange(missing, lease);
    return false;
  }

  /** Returns the slots of a request that has ended. The next request of this process has to lease its own. */
  freed(roleBudget: RoleBudget): void {
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      const lease = this.#leases.get(at);
      if (lease !== undefined && lease.leased > at.inFlight) this.#giveBack(at, lease);
    }
  }

  /** Requests of this role budget use slots while the store is away. `resume` reports them. */
  usesWithoutStore(roleBudget: RoleBudget): void {
    for (let at: Budget | undefined = roleBudget; at; at = at.above) if (at.policy.sharesSlots) this.#leaseOf(at);
  }

  /** The store is back: the slots of requests in flight are reported at once, so that no other process gets them. */
  resume(): void {
    for (const [budget, lease] of this.#leases) {
      if (lease.leased > 0 || budget.inFlight > 0) {
        lease.isDue = true;
        this.#scheduleExchange(budget, lease);
      } else if (lease.waiting.size === 0 && !lease.isRequesting) this.#drop(budget, lease);
    }
  }

  isRequesting(roleBudget: RoleBudget): boolean {
    for (let at: Budget | undefined = roleBudget; at; at = at.above)
      if (this.#leases.get(at)?.isRequesting) return true;
    return false;
  }

  takeChanges(): readonly PeerChange[] {
    return this.#changes.splice(0);
  }

  /** Returns all slots, also those of exchanges in flight. No request may wait for a slot any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#renewal?.cancel();
    const leases = [...this.#leases];
    for (const [budget, lease] of leases) this.#drop(budget, lease);
    // A change that the store applies again, because another process was faster, must not follow the last one.
    await Promise.allSettled(this.#exchanges);
    // If the store is away, the slots return when the lease expires.
    await Promise.all(leases.map(([budget]) => this.#update(budget, 0, 0).catch(() => undefined)));
  }

  #drop(budget: Budget, { idleTimer, retryTimer }: SlotLease): void {
    idleTimer?.cancel();
    retryTimer?.cancel();
    this.#leases.delete(budget);
  }

  #giveBack(budget: Budget, lease: SlotLease): void {
    lease.idleTimer?.cancel();
    lease.idleTimer = undefined;
    lease.leased = budget.inFlight;
    lease.isDue = true;
    this.#scheduleExchange(budget, lease);
  }

  #scheduleExchange(budget: Budget, lease: SlotLease): void {
    const isTooEarly = !lease.isDue && lease.notBeforeUs > this.#time.monotonicUs();
    if (lease.isRequesting || isTooEarly || this.#isClosed) return;
    lease.isRequesting = true;
    // In a microtask, so that everything of the present turn of the event loop goes in one exchange.
    queueMicrotask(() => {
      if (this.#isClosed) return;
      const exchange = this.#exchange(budget, lease).finally(() => this.#exchanges.delete(exchange));
      this.#exchanges.add(exchange);
    });
  }

  async #exchange(budget: Budget, lease: SlotLease): Promise<void> {
    const { wanted } = lease;
    lease.isDue = false;
    lease.wanted = 0;
    // Requests that were sent while the store was away hold slots too.
    lease.leased = Math.max(lease.leased, budget.inFlight);
    try {
      const { given, before } = await this.#update(budget, lease.leased, wanted);
      if (this.#isClosed) return;
      this.#onReached();
      lease.leased += given;
      lease.retryTimer?.cancel();
      lease.notBeforeUs = 0;
      if (given < wanted) {
        this.#refusedUs.set(budget, this.#time.monotonicUs());
        this.#retryLater(lease, before);
      } else if (wanted > 0) this.#refusedUs.delete(budget);
    } catch (error) {
      if (this.#isClosed) return;
      // Slots that were to be returned are free when the lease expires.
      const away = { processes: 1, error: error as StoreError };
      this.#changes.push({ kind: "store", shares: "limits", away });
    }
    lease.isRequesting = false;
    const roleBudgets = this.#notify(lease);
    if (lease.isDue) this.#scheduleExchange(budget, lease);
    else if (lease.leased > budget.inFlight) this.#keepOrGiveBack(budget, lease, roleBudgets);
    else if (lease.leased === 0 && lease.waiting.size === 0) this.#drop(budget, lease);
    if (lease.leased > 0) this.#renewal ??= this.#renewLater();
  }

  /** Keeps an unused slot for a moment if requests need it, which may lack something else; else returns it at once. */
  #keepOrGiveBack(budget: Budget, lease: SlotLease, roleBudgets: readonly RoleBudget[]): void {
    const nowUs = this.#time.monotonicUs();
    if (!roleBudgets.some(roleBudget => roleBudget.needsLeases(nowUs))) this.#giveBack(budget, lease);
    else lease.idleTimer ??= this.#giveBackLater(budget, lease, roleBudgets);
  }

  #giveBackLater(budget: Budget, lease: SlotLease, roleBudgets: readonly RoleBudget[]): Timer {
    // It keeps no program alive: a process that ends returns its slots.
    return setUnreferencedTimer(this.#time, IDLE_MS, () => {
      lease.idleTimer = undefined;
      // The reply of a slow store is under way, or a call that does not wait may try again. Without the slot, the units
      // that the store grants could not be used.
      const nowUs = this.#time.monotonicUs();
      if (roleBudgets.some(each => isRequestingUnits(each) || each.isTriedAgain(nowUs)))
        lease.idleTimer = this.#giveBackLater(budget, lease, roleBudgets);
      else this.#giveBack(budget, lease);
    });
  }

  #notify(lease: SlotLease): readonly RoleBudget[] {
    const roleBudgets = [...lease.waiting];
    lease.waiting.clear();
    for (const roleBudget of roleBudgets) this.#changes.push({ kind: "ready", roleBudget });
    if (this.#changes.length > 0) this.#wake();
    return roleBudgets;
  }

  #retryLater(lease: SlotLease, before: number): void {
    const retryUs = Math.min(RETRY_MAX_US, RETRY_US * (1 + before));
    lease.notBeforeUs = this.#time.monotonicUs() + retryUs;
    lease.retryTimer = this.#time.setTimer(retryUs / 1000, () => {
      // A timer may fire a moment early. Without another timer the requests would wait for ever.
      lease.notBeforeUs = 0;
      this.#notify(lease);
    });
  }

  #update(budget: Budget, holds: number, wanted: number): Promise<GivenSlots> {
    const { processId } = this.#store;
    // While the limits are still divided after an outage, the claim is the limit of all processes.
    const limit = (budget.policy.undivided ?? budget.policy).maxConcurrent;
    const dead = this.#dead.ids;
    return this.#store.change<SharedSlots, GivenSlots>(`slots ${budget.storeKey}`, ({ record = {}, nowUs }) => {
      const reply = leaseSlots(record, processId, { holds, wanted, limit, dead }, nowUs, LEASE_MS * 1000);
      const keepUntilUs = slotsExpiryUs(reply.slots, nowUs) + 1000;
      return { record: { next: reply.slots, keepUntilUs }, result: { given: reply.given, before: reply.before } };
    });
  }

  /** Renews the leases of this process well before they expire. */
  #renewLater(): Timer {
    return setUnreferencedTimer(this.#time, LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const [budget, lease] of this.#leases) {
        if (lease.leased === 0) continue;
        this.#renewal ??= this.#renewLater();
        lease.isDue = true;
        this.#scheduleExchange(budget, lease);
      }
    });
  }

  #leaseOf(budget: Budget): SlotLease {
    const known = this.#leases.get(budget);
    if (known !== undefined) return known;
    const lease: SlotLease = {
      leased: 0,
      isDue: false,
      wanted: 0,
      isRequesting: false,
      notBeforeUs: 0,
      idleTimer: undefined,
      retryTimer: undefined,
      waiting: new Set(),
    };
    this.#leases.set(budget, lease);
    return lease;
  }
}

function isRequestingUnits({ unitLease, costLogs }: RoleBudget): boolean {
  return unitLease?.isRequesting === true || costLogs.some(cost => cost.unitLease?.isRequesting === true);
}
