import { type Budget, budgetsAbove } from "../limiter/budget.ts";
import { chargeOf } from "../limiter/charge.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";

/** A role budget whose turn has come, and the smallest number of units that is of use to it. */
export interface SiblingTurn {
  readonly roleBudget: RoleBudget;
  readonly least: number;
}

/** A place in the queue of a shared budget. */
interface Place {
  /** Grows from the first place to the last. */
  number: number;
  least: number;
  /** Units that were granted in this turn. If there were too few, the turn goes on with the next ones. */
  granted: number;
}

/**
 * In which order the role budgets of this process get the units of a budget that they share (law L3). The store knows
 * processes only, and the timers of several role budgets fire at the same instant: without turns, the one that was served
 * last would ask first again, because its timer was set first.
 */
export class SiblingTurns {
  /** The role budgets that want units of a shared budget, in the order of their turns. */
  #queues = new WeakMap<Budget, Map<RoleBudget, Place>>();
  #lastNumber = 0;

  /** The role budget requests units: it keeps its turn, or gets the last one. */
  requesting(roleBudget: RoleBudget, least: number): void {
    for (const budget of limitedAbove(roleBudget)) {
      const queue = this.#queues.get(budget) ?? new Map<RoleBudget, Place>();
      this.#queues.set(budget, queue);
      const place = queue.get(roleBudget);
      if (place === undefined) queue.set(roleBudget, { number: this.#nextNumber(), least, granted: 0 });
      else place.least = least;
    }
  }

  /** The store has too few units of the budget with this key: the role budget needs no turn at the others. */
  refused(roleBudget: RoleBudget, key: string): void {
    for (const budget of limitedAbove(roleBudget))
      if (budget.storeKey !== key) this.#queues.get(budget)?.delete(roleBudget);
  }

  /** The role budget has got units. When it has those of one turn, its next turn comes after those of the others. */
  granted(roleBudget: RoleBudget, units: number): void {
    for (const budget of limitedAbove(roleBudget)) {
      const queue = this.#queues.get(budget);
      const place = queue?.get(roleBudget);
      if (queue === undefined || place === undefined) continue;
      const turn = turnUnits(budget, queue.size);
      place.granted += units;
      if (place.granted < turn) continue;
      place.granted = queue.size === 1 ? 0 : place.granted - turn;
      place.number = this.#nextNumber();
      queue.delete(roleBudget);
      queue.set(roleBudget, place);
    }
  }

  /** No request of the role budget waits any more. */
  leave(roleBudget: RoleBudget): void {
    for (const budget of limitedAbove(roleBudget)) this.#queues.get(budget)?.delete(roleBudget);
  }

  /** The limits have changed, and with them the budgets that are shared. */
  clear(): void {
    this.#queues = new WeakMap();
  }

  /** The turns that come before a request for `least` units of this role budget. */
  before(roleBudget: RoleBudget, least: number, nowUs: number): readonly SiblingTurn[] {
    return limitedAbove(roleBudget).flatMap(budget => this.#turnsBefore(budget, roleBudget, least, nowUs));
  }

  /** Whether a request for `least` units could only take units that one with an earlier turn needs together with others. */
  isBehindHeavier(roleBudget: RoleBudget, least: number, nowUs: number): boolean {
    for (const budget of limitedAbove(roleBudget))
      for (const [sibling, { least: units }] of this.#queues.get(budget) ?? []) {
        if (sibling === roleBudget) break;
        if (units > least && canSend(sibling, units, nowUs)) return true;
      }
    return false;
  }

  /** Grows in the order of the turns. Of the places at several budgets the last one counts. */
  orderOf(roleBudget: RoleBudget): number {
    return Math.max(
      0,
      ...limitedAbove(roleBudget).map(budget => this.#queues.get(budget)?.get(roleBudget)?.number ?? 0),
    );
  }

  /** The most units that the role budget may request: those of one turn. */
  mostUnits(roleBudget: RoleBudget): number {
    let most = Number.POSITIVE_INFINITY;
    for (const budget of limitedAbove(roleBudget)) {
      const queue = this.#queues.get(budget);
      const place = queue?.get(roleBudget);
      if (queue === undefined || place === undefined || queue.size === 1) continue;
      most = Math.min(most, turnUnits(budget, queue.size));
    }
    return most;
  }

  #nextNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /**
   * The first turn; and if it needs more units than this request, also the next ones, because there may be enough units
   * only for those. Role budgets that cannot send now leave the queue, so that no unit stays unused for them.
   */
  #turnsBefore(budget: Budget, roleBudget: RoleBudget, least: number, nowUs: number): readonly SiblingTurn[] {
    const queue = this.#queues.get(budget);
    const turns: SiblingTurn[] = [];
    for (const [sibling, { least: units }] of queue ?? []) {
      if (sibling === roleBudget) break;
      if (units > least && sibling.storeReadyUs(units) > nowUs) continue;
      if (!canSend(sibling, units, nowUs)) {
        queue?.delete(sibling);
        continue;
      }
      turns.push({ roleBudget: sibling, least: units });
      if (units <= least) break;
    }
    return turns;
  }
}

/** Whether a request waits, and only the store delays it. */
function canSend(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
  return roleBudget.waiting > 0 && !roleBudget.isDetached && roleBudget.admits(chargeOf(units), nowUs);
}

/** The budgets with rates that the role budget shares with others. */
function limitedAbove(roleBudget: RoleBudget): readonly Budget[] {
  return budgetsAbove(roleBudget).filter(({ windows }) => windows.length > 0);
}

/** The units of one turn: an equal part of every window. */
function turnUnits(budget: Budget, siblings: number): number {
  return Math.min(...budget.windows.map(({ limit }) => Math.ceil(limit / siblings)));
}
