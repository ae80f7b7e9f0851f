import { backoffMs } from "../core/breaker/backoff.ts";
import type { BudgetClaim } from "../core/limits/shared-budget.ts";
import type { StoreError } from "../errors.ts";
import type { Budget, Lane } from "../limiter/budget.ts";
import { Stock } from "../limiter/unit-lease.ts";
import {
  type Answer,
  type Ask,
  type BudgetStore,
  LEASE_MS,
  type Settlement,
  type StoreClaim,
} from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";

/** What is given is used soon or goes back: a process that slept must not come late with what others could have used. */
const FRESH_US = 1_000_000;
/** No more is asked for at once: what a process cannot send at once it keeps from the others. */
const MOST_UNITS = 64;
const RETRY = { baseMs: 1000, capMs: 30_000 };

export interface SharingEars {
  /** A lane has got something, or knows when it may ask again. */
  readonly news: (lane: Lane) => void;
  /** The store is away: from now on each process keeps to its share. Undefined when it is back. */
  readonly changed: (away: { readonly processes: number; readonly error: StoreError } | undefined) => void;
  /** Another process has stricter limits in mind for this lane, and they count. */
  readonly overruled: (lane: Lane) => void;
}

/**
 * Draws units for this process's lanes from a store that other processes draw on too. All that has come up since the
 * last call goes in one, and only one is under way at a time. While the store is away nothing is drawn, and the limits
 * are divided (law S4); it is asked again now and then, when there is traffic.
 */
export class Sharing {
  readonly #store: BudgetStore;
  readonly #time: Time;
  readonly #random: () => number;
  readonly #ears: SharingEars;
  readonly #wanted = new Map<Lane, { readonly least: number; readonly most: number }>();
  readonly #settlements = new Map<string, { keys: readonly string[]; written: number; returned: number }>();
  /** Lanes that have something out. */
  readonly #owing = new Set<Lane>();
  #isBusy = false;
  #isDue = false;
  #isAway = false;
  #failures = 0;
  #retryUs = 0;
  #renewal: Timer | undefined;

  constructor(store: BudgetStore, time: Time, random: () => number, ears: SharingEars) {
    this.#store = store;
    this.#time = time;
    this.#random = random;
    this.#ears = ears;
  }

  /** Whether a lane may send so many units now, as far as others are concerned. Asks nobody. */
  has(lane: Lane, units: number, nowUs: number): boolean {
    if (units === 0 || this.#isAway || !isLimited(lane)) return true;
    const { stock } = lane;
    return stock !== undefined && stock.units >= units && nowUs - stock.givenUs < FRESH_US;
  }

  /** The same for somebody whose turn it is; what is missing is asked for, and `wanted` units with it. */
  covers(lane: Lane, units: number, wanted: number, nowUs: number): boolean {
    this.revisit(nowUs);
    if (this.has(lane, units, nowUs)) return true;
    const stock = this.#stockOf(lane);
    this.#giveUp(lane, stock);
    if (stock.isAsking || stock.notBeforeUs > nowUs) return false;
    stock.isAsking = true;
    this.#wanted.set(lane, { least: units, most: Math.max(units, Math.min(wanted, MOST_UNITS)) });
    this.#soon();
    return false;
  }

  taken(lane: Lane, units: number): void {
    const { stock } = lane;
    if (stock !== undefined) stock.units = Math.max(0, stock.units - units);
  }

  written(lane: Lane, units: number): void {
    this.#settle(lane, units, 0);
  }

  returned(lane: Lane, units: number): void {
    this.#settle(lane, 0, units);
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** The store has failed at something else. */
  failed(error: StoreError): void {
    this.#away(error, [], []);
  }

  /** Somebody has something to send: a reason to look whether a store that was away is back. */
  revisit(nowUs: number): void {
    if (this.#isAway && nowUs >= this.#retryUs) this.#soon();
  }

  /** What nobody in the line wants any more goes back at once. */
  tidy(lane: Lane, isWanted: boolean): void {
    if (!isWanted && lane.stock !== undefined) this.#giveUp(lane, lane.stock);
  }

  /** Gives everything back and says goodbye. */
  async close(): Promise<void> {
    this.#renewal?.cancel();
    for (const lane of this.#owing) this.#settle(lane, 0, lane.stock?.out ?? 0);
    const last = [...this.#settlements.values()];
    this.#settlements.clear();
    // A store that is away will find out by itself, when the lease is over.
    if (last.length > 0 && !this.#isAway) await this.#store.exchange(last, []).catch(() => undefined);
    await this.#store.close();
  }

  #stockOf(lane: Lane): Stock {
    lane.stock ??= new Stock();
    return lane.stock;
  }

  #giveUp(lane: Lane, stock: Stock): void {
    if (stock.units === 0) return;
    const { units } = stock;
    stock.units = 0;
    this.#settle(lane, 0, units);
  }

  #settle(lane: Lane, written: number, returned: number): void {
    const { stock } = lane;
    if (stock === undefined || stock.out === 0) return;
    // What was granted while the store was away was never drawn from it.
    const gone = Math.min(written, stock.out);
    const back = Math.min(returned, stock.out - gone);
    if (gone + back === 0) return;
    stock.out -= gone + back;
    if (stock.out === 0) this.#owing.delete(lane);
    const name = stock.keys.join("\n");
    const sum = this.#settlements.get(name) ?? { keys: stock.keys, written: 0, returned: 0 };
    sum.written += gone;
    sum.returned += back;
    this.#settlements.set(name, sum);
    this.#soon();
  }

  /** With everything else that comes up in this turn. */
  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      void this.#exchange();
    });
  }

  async #exchange(): Promise<void> {
    if (this.#isBusy || (this.#isAway && this.#time.monotonicUs() < this.#retryUs)) return;
    const settlements: readonly Settlement[] = [...this.#settlements.values()];
    const lanes = [...this.#wanted];
    if (settlements.length + lanes.length === 0 && !this.#isAway) return;
    this.#settlements.clear();
    this.#wanted.clear();
    this.#isBusy = true;
    try {
      const answers = await this.#store.exchange(
        settlements,
        lanes.map(([lane, wanted]) => askOf(lane, wanted)),
      );
      this.#isBusy = false;
      this.#back();
      for (const [index, [lane]] of lanes.entries()) this.#heed(lane, answers[index]);
    } catch (error) {
      this.#isBusy = false;
      this.#away(
        error as StoreError,
        settlements,
        lanes.map(([lane]) => lane),
      );
    }
    if (this.#settlements.size + this.#wanted.size > 0) this.#soon();
  }

  #heed(lane: Lane, answer: Answer | undefined): void {
    const stock = this.#stockOf(lane);
    const nowUs = this.#time.monotonicUs();
    stock.isAsking = false;
    if (answer?.kind === "given") {
      stock.keys = claimsOf(lane).map(({ key }) => key);
      stock.units += answer.units;
      stock.out += answer.units;
      stock.givenUs = nowUs;
      this.#owing.add(lane);
      this.#renewal ??= this.#renewLater();
    } else if (answer !== undefined) {
      stock.notBeforeUs = nowUs + Math.ceil(answer.waitMs * 1000);
    }
    if (answer?.isStricter && !stock.isOverruled) {
      stock.isOverruled = true;
      this.#ears.overruled(lane);
    }
    this.#ears.news(lane);
  }

  #away(error: StoreError, settlements: readonly Settlement[], lanes: readonly Lane[]): void {
    this.#failures += 1;
    this.#retryUs =
      this.#time.monotonicUs() + 1000 * Math.max(100, backoffMs(RETRY, this.#failures, this.#random(), undefined));
    for (const { keys, written, returned } of settlements) {
      const name = keys.join("\n");
      const sum = this.#settlements.get(name) ?? { keys, written: 0, returned: 0 };
      sum.written += written;
      sum.returned += returned;
      this.#settlements.set(name, sum);
    }
    const isNews = !this.#isAway;
    this.#isAway = true;
    if (isNews) this.#ears.changed({ processes: Math.max(1, this.#store.processes), error });
    // What came up meanwhile is not asked either: nobody waits for an answer that is not going to come.
    const asking = new Set([...lanes, ...this.#wanted.keys()]);
    this.#wanted.clear();
    for (const lane of asking) {
      this.#stockOf(lane).isAsking = false;
      this.#ears.news(lane);
    }
  }

  #back(): void {
    this.#failures = 0;
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#ears.changed(undefined);
  }

  /** Says in time that this process lives and still has what it has. */
  #renewLater(): Timer {
    return this.#time.setTimer(LEASE_MS / 3, () => {
      this.#renewal = undefined;
      for (const lane of this.#owing) {
        const { stock } = lane;
        if (stock === undefined) continue;
        this.#giveUp(lane, stock);
        const name = stock.keys.join("\n");
        if (stock.out > 0 && !this.#settlements.has(name))
          this.#settlements.set(name, { keys: stock.keys, written: 0, returned: 0 });
      }
      if (this.#owing.size > 0) this.#renewal = this.#renewLater();
      this.#soon();
    });
  }
}

function isLimited(lane: Lane): boolean {
  for (let at: Budget | undefined = lane; at; at = at.above) if (at.windows.length > 0) return true;
  return false;
}

function askOf(lane: Lane, { least, most }: { readonly least: number; readonly most: number }): Ask {
  return { claims: claimsOf(lane), least, most };
}

/** Budgets without windows have nothing to share. */
function claimsOf(lane: Lane): readonly StoreClaim[] {
  const claims: StoreClaim[] = [];
  if (lane.windows.length > 0) claims.push({ key: `lane ${lane.name} ${lane.role}`, ...claimOf(lane) });
  for (let at = lane.above; at; at = at.above) {
    if (at.windows.length > 0) claims.push({ key: `total ${at.name}`, ...claimOf(at) });
  }
  return claims;
}

function claimOf({ windows, policy, spacingUs }: Budget): BudgetClaim {
  return {
    windows: windows.map(({ limit, spanUs }, index) => ({
      limit,
      spanUs,
      windowUs: policy.rates[index]?.windowUs ?? spanUs,
    })),
    spacingUs,
  };
}
