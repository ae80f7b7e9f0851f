import type { Time } from "../time/time.ts";
import { type Budget, Lane, NEEDS_SLOT } from "./budget.ts";
import { Place } from "./scheduler-node.ts";
import type { Waiter, WaitingLine } from "./wait-queue.ts";

/** What trying a place led to: somebody went, nobody there can, or a budget at `Place` is in the way. */
type Served = "went" | "idle" | Place;

/**
 * Lets those who wait through, first in first out within a lane, in turns between the lanes of a shared budget and
 * between the hosts under the global ceiling (law L3). Nobody polls: a place that lacks time arms one timer, one that
 * lacks a slot is woken by the release of one, and whoever is woken computes again (law L2).
 *
 * A request whose turn it is keeps the turn until its budget has enough for it, so that a heavy one cannot be starved
 * by light ones; but it holds nothing meanwhile, and what waits for a narrower budget is out of everybody's way.
 */
export class Turnstile {
  readonly #time: Time;
  /** Takes everything for a request that was found ready on its whole path. False when it went elsewhere instead. */
  readonly #take: (waiter: Waiter, nowUs: number) => boolean;
  /** Whether other processes leave it to this one. False means that they are being asked: `slotFreed` tells when. */
  readonly #isCovered: (waiter: Waiter, line: WaitingLine, nowUs: number) => boolean;
  readonly #places = new Map<Budget | string, Place>();
  readonly #root: Place;
  #untilUs = 0;
  #isPumping = false;
  /** Counts what may change the forecasts of lanes that share a budget: departures, returns, changes of pace. */
  epoch = 0;

  constructor(
    root: Budget,
    time: Time,
    take: (waiter: Waiter, nowUs: number) => boolean,
    isCovered: (waiter: Waiter, line: WaitingLine, nowUs: number) => boolean = () => true,
  ) {
    this.#time = time;
    this.#take = take;
    this.#isCovered = isCovered;
    this.#root = new Place(root, undefined);
  }

  get waiting(): number {
    return this.#root.waiting;
  }

  lineOf(lane: Lane): WaitingLine | undefined {
    return this.#places.get(lane)?.line;
  }

  /** True when somebody is ahead of a newcomer to this lane, there or at a budget it shares. */
  isContended(lane: Lane): boolean {
    if (this.#root.waiting === 0) return false;
    if (this.#places.has(lane) || this.#root.isBusy) return true;
    for (let budget = lane.above; budget !== undefined; budget = budget.above) {
      const place = this.#places.get(budget);
      if (place?.isBusy) return true;
    }
    return false;
  }

  /**
   * At least so many units go before a newcomer with `ahead` units in front of it in its own lane, when lanes take turns
   * at `budget`: no more of a neighbour than it may send by its own windows, and nothing of the turns it owes.
   */
  unitsAhead(budget: Budget, lane: Lane, ahead: number, nowUs: number): number {
    let units = ahead;
    const own = this.#childToward(budget, lane);
    const isInTurn = own !== undefined && own.waiting > 0;
    for (const child of this.#places.get(budget)?.children ?? []) {
      if (child === own) continue;
      const first = isInTurn || child.debt > 0 ? 0 : (child.line?.first?.units ?? 1);
      const waiting = child.line?.units ?? child.waiting;
      const sendable = child.budget?.roomUnits(nowUs) ?? waiting;
      units += Math.max(0, Math.min(waiting, sendable, Math.max(first, ahead - child.debt)));
    }
    return units;
  }

  join(waiter: Waiter): void {
    const place = this.#placeOf(waiter.lane);
    place.line?.join(waiter);
    this.#count(place, 1);
    if (place.line?.length === 1) this.#enroll(place);
    this.pump();
  }

  /** Aborted while waiting: whoever was behind it is let through if it was in the way. */
  leave(waiter: Waiter): void {
    const place = this.#places.get(waiter.lane);
    if (place?.line === undefined || waiter.hasLeft) return;
    const wasFirst = place.line.first === waiter;
    place.line.leave(waiter);
    this.epoch += 1;
    this.#count(place, -1);
    if (!wasFirst) return;
    for (let at: Place | undefined = place; at !== undefined; at = at.above) this.#unpark(at);
    this.pump();
  }

  /** Takes everybody out of their lines, first to last, to be put back under other limits. */
  evacuate(): readonly Waiter[] {
    const places = [...this.#places.values()];
    for (const place of places) place.timer?.cancel();
    this.#places.clear();
    this.#root.children.clear();
    this.#root.waiting = 0;
    this.#root.parkedFor = undefined;
    return places.flatMap(place => place.line?.drain() ?? []);
  }

  /** Computes again what this lane waits for, ahead of the timers that would do so. */
  retry(lane: Lane): void {
    for (let at = this.#places.get(lane); at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
    this.pump();
  }

  /** A slot of this budget is free. Call `pump` when all that a request held has been given back. */
  slotFreed(budget: Budget): void {
    const place = budget === this.#root.key ? this.#root : this.#places.get(budget);
    if (place?.parkedFor === "slot") this.#unpark(place);
  }

  /** What was foretold for those who wait at this lane, or share a budget with it, no longer holds. */
  outdate(lane: Lane): void {
    this.epoch += 1;
    const line = this.lineOf(lane);
    if (line !== undefined) line.isStale = true;
  }

  /** The windows of this budget may admit earlier, or later, than was computed. Call `pump` when all is said. */
  paceChanged(budget: Budget): void {
    this.epoch += 1;
    const place = this.#places.get(budget);
    if (place === undefined) return;
    if (place.line !== undefined) place.line.isStale = true;
    // Above it, too: whoever had the turn at a shared budget may have lost it, and must not keep the others waiting.
    for (let at: Place | undefined = place; at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
  }

  pump(): void {
    // A grant may run code that comes back in here; the outer round goes on and sees what it left.
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (this.#root.isReady && this.#serve(this.#root, this.#time.monotonicUs()) === "went");
    } finally {
      this.#isPumping = false;
    }
  }

  #serve(place: Place, nowUs: number): Served {
    if (place.line !== undefined) return this.#serveLane(place, place.line, nowUs);
    for (const child of place.children) {
      if (child.debt > 0 && place.children.size > 1) {
        child.debt -= 1;
        toTheBack(place.children, child);
        continue;
      }
      const served = this.#serve(child, nowUs);
      if (served === "went") {
        if (child.isReady) toTheBack(place.children, child);
        else place.children.delete(child);
        return served;
      }
      if (served === "idle" || served === child) {
        // It waits for something of its own, and comes back by itself.
        place.children.delete(child);
        continue;
      }
      if (served === place) this.#park(place);
      return served;
    }
    return "idle";
  }

  #serveLane(place: Place, line: WaitingLine, nowUs: number): Served {
    const waiter = line.first;
    if (waiter === undefined) return "idle";
    for (let at: Place | undefined = place; at !== undefined; at = at.above) {
      const readyUs = at.budget?.readyUs(waiter.units, nowUs) ?? 0;
      if (readyUs <= nowUs) continue;
      this.#untilUs = readyUs;
      if (at === place) this.#park(place);
      return at;
    }
    if (!this.#isCovered(waiter, line, nowUs)) {
      this.#untilUs = NEEDS_SLOT;
      this.#park(place);
      return place;
    }
    line.serve(nowUs);
    this.#count(place, -1);
    if (!this.#take(waiter, nowUs)) return "went";
    for (let at: Place = place; at.above !== undefined && at.above !== this.#root; at = at.above) {
      at.debt = Math.max(0, waiter.units - 1);
    }
    return "went";
  }

  #park(place: Place): void {
    if (this.#untilUs === NEEDS_SLOT) {
      place.parkedFor = "slot";
      return;
    }
    place.parkedFor = "time";
    place.timer = this.#time.setTimer((this.#untilUs - this.#time.monotonicUs()) / 1000, () => {
      this.#unpark(place);
      this.pump();
    });
  }

  #unpark(place: Place): void {
    place.parkedFor = undefined;
    place.timer?.cancel();
    place.timer = undefined;
    if (place.isReady) this.#enroll(place);
  }

  /** Puts a place in line for its turn, and with it every place above that is not waiting for something of its own. */
  #enroll(place: Place): void {
    for (let at = place; at.above !== undefined && at.parkedFor === undefined; at = at.above) at.above.children.add(at);
  }

  #placeOf(key: Budget | string): Place {
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const place = new Place(key, this.#aboveOf(key));
    this.#places.set(key, place);
    return place;
  }

  #aboveOf(key: Budget | string): Place {
    if (typeof key === "string") return this.#root;
    if (key.above !== undefined) return this.#placeOf(key.above);
    // The roles of one host take one turn between them under the global ceiling.
    return key instanceof Lane ? this.#placeOf(key.name) : this.#root;
  }

  #childToward(budget: Budget, lane: Lane): Place | undefined {
    let at: Budget = lane;
    while (at.above !== undefined && at.above !== budget) at = at.above;
    return this.#places.get(at);
  }

  /** Counts somebody in or out, and forgets places where nobody waits any more. */
  #count(place: Place, change: 1 | -1): void {
    for (let at: Place | undefined = place; at !== undefined; at = at.above) {
      at.waiting += change;
      if (at.waiting > 0 || at === this.#root) continue;
      at.timer?.cancel();
      at.above?.children.delete(at);
      this.#places.delete(at.key);
    }
  }
}

function toTheBack<T>(set: Set<T>, member: T): void {
  set.delete(member);
  set.add(member);
}
