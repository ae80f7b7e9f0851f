import { type SharedSlots, slotsForgettableUs, tradeSlots } from "../core/limits/shared-slots.ts";
import type { StoreError } from "../errors.ts";
import type { Budget, Lane } from "../limiter/budget.ts";
import { LEASE_MS, type Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";

/** Nobody hears of a slot that others give back: whoever wants one asks again after this. */
const ASK_AGAIN_US = 100_000;
/** Who has a slot and waits for something else keeps it so long. */
const IDLE_MS = 250;

export interface PlacesEars {
  /** There may be a slot for this lane now. */
  readonly news: (lane: Lane) => void;
  readonly isWanted: (lane: Lane) => boolean;
  readonly failed: (error: StoreError) => void;
  /** While the store is away each process has its share of the slots. */
  readonly isAway: () => boolean;
}

interface Account {
  /** Slots that are this process's for now; those in flight are among them. */
  leased: number;
  /** There is something to tell the store. */
  isDue: boolean;
  wanted: number;
  isTrading: boolean;
  notBeforeUs: number;
  /** When those of no use yet go back. */
  idle: Timer | undefined;
  readonly waiting: Set<Lane>;
}

/**
 * Slots of budgets whose `max_concurrent` counts over all processes. One is had from the store before a request goes,
 * and goes back when it has ended, so that whoever has waited longest gets it, wherever he is.
 */
export class SharedPlaces {
  readonly #store: Store;
  readonly #time: Time;
  readonly #ears: PlacesEars;
  readonly #accounts = new Map<Budget, Account>();
  #renewal: Timer | undefined;

  constructor(store: Store, time: Time, ears: PlacesEars) {
    this.#store = store;
    this.#time = time;
    this.#ears = ears;
  }

  /** Whether there is a slot of this process's own on the whole way. Asks nobody. */
  has(lane: Lane): boolean {
    return this.#lacking(lane) === undefined;
  }

  /** The same for somebody whose turn it is; what is missing is asked for, for `wanted` requests. */
  covers(lane: Lane, wanted: number): boolean {
    const lacking = this.#lacking(lane);
    if (lacking === undefined) return true;
    const account = this.#accountOf(lacking);
    account.waiting.add(lane);
    const room = lacking.policy.maxConcurrent - account.leased;
    account.wanted = Math.max(account.wanted, Math.min(wanted, room));
    this.#trade(lacking, account);
    return false;
  }

  /** A request has ended. Its slots go back; whoever is next here asks like everybody else. */
  freed(lane: Lane): void {
    for (let at: Budget | undefined = lane; at; at = at.above) {
      const account = this.#accounts.get(at);
      if (account !== undefined && account.leased > at.inFlight) this.#giveBack(at, account);
    }
  }

  isTrading(lane: Lane): boolean {
    for (let at: Budget | undefined = lane; at; at = at.above) if (this.#accounts.get(at)?.isTrading) return true;
    return false;
  }

  /** Gives back what is left. */
  async close(): Promise<void> {
    this.#renewal?.cancel();
    const accounts = [...this.#accounts];
    this.#accounts.clear();
    for (const [, { idle }] of accounts) idle?.cancel();
    // A store that is away will find out by itself, when the lease is over.
    await Promise.all(accounts.map(([budget]) => this.#change(budget, 0, 0).catch(() => 0)));
  }

  #lacking(lane: Lane): Budget | undefined {
    if (this.#ears.isAway()) return undefined;
    for (let at: Budget | undefined = lane; at; at = at.above) {
      if (at.policy.sharesSlots && (this.#accounts.get(at)?.leased ?? 0) <= at.inFlight) return at;
    }
    return undefined;
  }

  #giveBack(budget: Budget, account: Account): void {
    account.idle?.cancel();
    account.idle = undefined;
    account.leased = budget.inFlight;
    account.isDue = true;
    this.#trade(budget, account);
  }

  #trade(budget: Budget, account: Account): void {
    const isTooEarly = !account.isDue && account.notBeforeUs > this.#time.monotonicUs();
    if (account.isTrading || isTooEarly) return;
    account.isTrading = true;
    // With everything else that comes up in this turn.
    queueMicrotask(() => void this.#traded(budget, account));
  }

  async #traded(budget: Budget, account: Account): Promise<void> {
    const { wanted } = account;
    account.isDue = false;
    account.wanted = 0;
    // What went while the store was away counts like the rest.
    account.leased = Math.max(account.leased, budget.inFlight);
    try {
      const given = await this.#change(budget, account.leased, wanted);
      account.leased += given;
      if (given < wanted) this.#askAgainLater(account);
    } catch (error) {
      // What was to go back does so when the lease is over.
      this.#ears.failed(error as StoreError);
    }
    account.isTrading = false;
    const lanes = this.#tell(account);
    if (account.isDue) this.#trade(budget, account);
    else if (account.leased > budget.inFlight) this.#keepOrGiveBack(budget, account, lanes);
    else if (account.leased === 0 && account.waiting.size === 0) this.#accounts.delete(budget);
    if (account.leased > 0) this.#renewal ??= this.#renewLater();
  }

  /** A slot that was given to somebody who waits for something else now is kept for a moment; one that nobody wants is not. */
  #keepOrGiveBack(budget: Budget, account: Account, lanes: readonly Lane[]): void {
    if (!lanes.some(lane => this.#ears.isWanted(lane))) this.#giveBack(budget, account);
    else account.idle ??= this.#time.setTimer(IDLE_MS, () => this.#giveBack(budget, account));
  }

  #tell(account: Account): readonly Lane[] {
    const lanes = [...account.waiting];
    account.waiting.clear();
    for (const lane of lanes) this.#ears.news(lane);
    return lanes;
  }

  #askAgainLater(account: Account): void {
    account.notBeforeUs = this.#time.monotonicUs() + ASK_AGAIN_US;
    this.#time.setTimer(ASK_AGAIN_US / 1000, () => this.#tell(account));
  }

  #change(budget: Budget, holds: number, wanted: number): Promise<number> {
    const { party } = this.#store;
    const limit = budget.policy.maxConcurrent;
    return this.#store.change<SharedSlots, number>(`slots ${nameOf(budget)}`, ({ note = {}, nowUs }) => {
      const { slots, given } = tradeSlots(note, party, { holds, wanted, limit }, nowUs, LEASE_MS * 1000);
      return { note: { next: slots, keepUntilUs: slotsForgettableUs(slots, nowUs) + 1000 }, result: given };
    });
  }

  /** Says in time that this process lives and still has what it has. */
  #renewLater(): Timer {
    return this.#time.setTimer(LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const [budget, account] of this.#accounts) {
        if (account.leased === 0) continue;
        this.#renewal ??= this.#renewLater();
        account.isDue = true;
        this.#trade(budget, account);
      }
    });
  }

  #accountOf(budget: Budget): Account {
    const known = this.#accounts.get(budget);
    if (known !== undefined) return known;
    const account: Account = {
      leased: 0,
      isDue: false,
      wanted: 0,
      isTrading: false,
      notBeforeUs: 0,
      idle: undefined,
      waiting: new Set(),
    };
    this.#accounts.set(budget, account);
    return account;
  }
}

function nameOf(budget: Budget): string {
  return "role" in budget ? `lane ${budget.name} ${budget.role}` : `total ${budget.name}`;
}
