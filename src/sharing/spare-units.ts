import type { Budget } from "../limiter/budget.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";

/** All processes together keep at most 1/64 of a limit as spare units. */
const SPARE_PARTS = 64;
/** Spare units are kept for at most 50 ms, and for at most 1/20 of the shortest window. */
const KEEP_US = 50_000;
const KEEP_PARTS = 20;
/** After a lease that was used up quickly, the next one has this many times its units. */
const GROWTH = 4;

export interface SpareUnitsOptions {
  readonly time: Time;
  /** The number of processes that share the store. */
  readonly processes: () => number;
  /** Called when units were kept for as long as they may be, and when settlements have waited for as long. */
  readonly onKept: () => void;
}

/**
 * How many units a process leases beyond its waiting requests. A caller that sends one request after the other never has
 * a second one waiting: without spare units, each of its requests would take two exchanges. The number grows whenever the
 * last units were used up quickly, and is 0 again as soon as the store has fewer units than requested. Units that
 * are not used within a moment are returned.
 */
export class SpareUnits {
  readonly #options: SpareUnitsOptions;
  readonly #spare = new WeakMap<RoleBudget, number>();
  #timer: Timer | undefined;

  constructor(options: SpareUnitsOptions) {
    this.#options = options;
  }

  /** How many spare units the process requests with the units that it requests now. */
  grow(roleBudget: RoleBudget, nowUs: number): number {
    const before = this.#spare.get(roleBudget) ?? 0;
    const wasQuick = nowUs - (roleBudget.unitLease?.leasedUs ?? Number.NEGATIVE_INFINITY) <= keepUs(roleBudget);
    const spare = wasQuick ? Math.min(GROWTH * (before + 1) - 1, this.#maxSpare(roleBudget)) : 0;
    if (spare > 0) this.#spare.set(roleBudget, spare);
    else this.#spare.delete(roleBudget);
    return spare;
  }

  /** The store has fewer units than requested: other requests need them. */
  end(roleBudget: RoleBudget): void {
    this.#spare.delete(roleBudget);
  }

  /** Whether the unused units of this budget are kept a moment longer, and its settlements wait for the next request. */
  keeps(roleBudget: RoleBudget): boolean {
    const isSpare = this.#spare.has(roleBudget) && !this.#isOver(roleBudget);
    if (!isSpare && !roleBudget.isTriedAgain(this.#options.time.monotonicUs())) return false;
    this.#timer ??= setUnreferencedTimer(this.#options.time, keepUs(roleBudget) / 1000, () => {
      this.#timer = undefined;
      this.#options.onKept();
    });
    return true;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #isOver(roleBudget: RoleBudget): boolean {
    const leasedUs = roleBudget.unitLease?.leasedUs ?? 0;
    return this.#options.time.monotonicUs() - leasedUs >= keepUs(roleBudget);
  }

  #maxSpare(roleBudget: RoleBudget): number {
    const parts = SPARE_PARTS * Math.max(1, this.#options.processes());
    let most = Number.POSITIVE_INFINITY;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) {
      // With even spacing a unit is due at one time only.
      if (at.spacingUs > 0) return 0;
      for (const { limit } of at.windows) most = Math.min(most, Math.floor(limit / parts));
    }
    return most;
  }
}

function keepUs(roleBudget: RoleBudget): number {
  let us = KEEP_US;
  for (let at: Budget | undefined = roleBudget; at; at = at.above)
    for (const { spanUs } of at.windows) us = Math.min(us, spanUs / KEEP_PARTS);
  return us;
}
