import type { Time } from "../time/time.ts";
import type { Budget } from "./budget.ts";
import type { Charge } from "./charge.ts";
import type { LateWaiter } from "./queue-estimate.ts";
import type { RoleBudget } from "./role-budget.ts";
import { Scheduler } from "./scheduler.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The requests that wait for budgets. Requests that windows do not count (HEAD, law L7) have their own scheduler over
 * the same budgets, so that they do not queue for a rate. So have requests that need more than the share of this process
 * while the store is away: the smaller requests behind them go on.
 */
export class Queues {
  readonly #root: Budget;
  readonly #time: Time;
  readonly counted: Scheduler;
  readonly #uncounted: Scheduler;
  /** Requests that wait until the full limits apply again. */
  readonly #aboveShare: Scheduler;
  readonly #all: readonly Scheduler[];
  /** Which scheduler gets a free slot first. It alternates for each role budget, so that neither kind starves. */
  #isUncountedFirst = false;

  /** `wake` is called when time has passed that a request waited for: `next` may name it now. */
  constructor(root: Budget, time: Time, wake: () => void) {
    this.#root = root;
    this.#time = time;
    this.counted = new Scheduler(root, time, wake);
    this.#uncounted = new Scheduler(root, time, wake);
    this.#aboveShare = new Scheduler(root, time, wake);
    this.#all = [this.counted, this.#uncounted, this.#aboveShare];
  }

  get waiting(): number {
    return this.counted.waiting + this.#uncounted.waiting + this.#aboveShare.waiting;
  }

  join(waiter: Waiter): void {
    const { roleBudget, charge, units } = waiter;
    waiter.scheduler = this.of(roleBudget, charge);
    waiter.scheduler.join(waiter);
    // It was denied after it had got its units, and comes back.
    if (units > 0 && roleBudget.holdsUnits(units)) waiter.scheduler.giveTurn(roleBudget);
  }

  leave(waiter: Waiter): void {
    waiter.scheduler?.leave(waiter);
  }

  /** Where the request waits; if it does not, where it would wait. */
  schedulerOf(waiter: Waiter): Scheduler {
    return waiter.scheduler ?? this.of(waiter.roleBudget, waiter.charge);
  }

  /** The scheduler of new requests like this. Learned limits may change which one it is. */
  of(roleBudget: RoleBudget, charge: Charge): Scheduler {
    if (charge.units === 0) return this.#uncounted;
    return roleBudget.exceedsShare(charge) ? this.#aboveShare : this.counted;
  }

  /** The request that has the turn, to be answered with `take` or `park` of its scheduler; undefined if none is ready. */
  next(nowUs: number): Waiter | undefined {
    const [first, second] = this.#isUncountedFirst ? [this.#uncounted, this.counted] : [this.counted, this.#uncounted];
    const waiter = first.next(nowUs) ?? second.next(nowUs) ?? this.#aboveShare.next(nowUs);
    if (waiter === undefined) this.#isUncountedFirst = false;
    return waiter;
  }

  /** A request of this role budget has freed its slots. */
  slotsFreed(roleBudget: RoleBudget): void {
    roleBudget.servesUncountedFirst = !roleBudget.servesUncountedFirst;
    this.#isUncountedFirst = roleBudget.servesUncountedFirst;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) this.#slotFreed(at);
    this.#slotFreed(this.#root);
  }

  /**
   * The store has replied: it may have given what parked requests of this role budget lack, or has said when it can. The
   * budgets above may be parked until that reply.
   */
  replied(roleBudget: RoleBudget): void {
    const nowUs = this.#time.monotonicUs();
    for (let at: Budget | undefined = roleBudget; at; at = at.above) this.#slotFreed(at);
    if (roleBudget.holdsUnits(1)) this.counted.giveTurn(roleBudget);
    for (const scheduler of this.#all) if (scheduler.waiting > 0) scheduler.estimates.replied(roleBudget, nowUs);
  }

  /** The store may have units of this role budget before the time that it has announced. */
  hasten(roleBudget: RoleBudget): void {
    for (const scheduler of this.#all) {
      scheduler.hasten(roleBudget);
      scheduler.estimates.drop(roleBudget);
    }
  }

  /** The windows or the hold of this role budget have changed. */
  paceChanged(roleBudget: RoleBudget): void {
    for (const scheduler of this.#all) scheduler.paceChanged(roleBudget);
  }

  /** Requests that pass this budget may start later than estimated. */
  changed(budget: Budget): void {
    for (const scheduler of this.#all) if (scheduler.waiting > 0) scheduler.estimates.changed(budget);
  }

  /** A request was written later than it was granted. Estimates assume that both happen at once. */
  writtenLate(roleBudget: RoleBudget, byUs: number): void {
    this.counted.estimates.delayed(roleBudget, byUs);
  }

  /** Whether the starts of queued requests have to be compared with their bounds. */
  get hasSuspects(): boolean {
    return this.#all.some(({ estimates }) => estimates.hasSuspects);
  }

  /** The requests that can no longer start within their bounds. */
  takeLate(nowUs: number): readonly LateWaiter[] {
    return this.#all.flatMap(({ estimates }) => estimates.takeLate(nowUs));
  }

  waiters(): readonly Waiter[] {
    return this.#all.flatMap(scheduler => scheduler.waiters());
  }

  /** Empties all queues, and returns the requests in the order of their arrival. */
  removeAll(): readonly Waiter[] {
    return this.#all.flatMap(scheduler => scheduler.removeAll()).sort((a, b) => a.number - b.number);
  }

  #slotFreed(budget: Budget): void {
    for (const scheduler of this.#all) scheduler.slotFreed(budget);
  }
}
