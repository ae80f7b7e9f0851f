import type { Time } from "../time/time.ts";
import { type Budget, NEEDS_SLOT, RoleBudget } from "./budget.ts";
import { SchedulerNode } from "./scheduler-node.ts";
import type { Waiter, WaitQueue } from "./wait-queue.ts";

/** What trying a place led to: somebody went, nobody there can, or a budget at `Place` is in the way. */
type ServeOutcome = "went" | "idle" | SchedulerNode;

/**
 * Lets those who wait through, first in first out within a lane, in turns between the lanes of a shared budget and
 * between the hosts under the global ceiling (law L3). Nobody polls: a place that lacks time arms one timer, one that
 * lacks a slot is woken by the release of one, and whoever is woken computes again (law L2).
 *
 * A request whose turn it is keeps the turn until its budget has enough for it, so that a heavy one cannot be starved
 * by light ones; but it holds nothing meanwhile, and what waits for a narrower budget is out of everybody's way.
 */
export class Scheduler {
  readonly #time: Time;
  /** Takes everything for a request that was found ready on its whole path. False when it went elsewhere instead. */
  readonly #issue: (waiter: Waiter, nowUs: number) => boolean;
  /** Whether other processes leave it to this one. False means that they are being asked: `slotFreed` tells when. */
  readonly #isPeerReady: (waiter: Waiter, queue: WaitQueue, nowUs: number) => boolean;
  readonly #nodes = new Map<Budget | string, SchedulerNode>();
  readonly #root: SchedulerNode;
  #untilUs = 0;
  #isServing = false;
  /** Counts what may change the forecasts of lanes that share a budget: departures, returns, changes of pace. */
  epoch = 0;

  constructor(
    root: Budget,
    time: Time,
    issue: (waiter: Waiter, nowUs: number) => boolean,
    isPeerReady: (waiter: Waiter, queue: WaitQueue, nowUs: number) => boolean = () => true,
  ) {
    this.#time = time;
    this.#issue = issue;
    this.#isPeerReady = isPeerReady;
    this.#root = new SchedulerNode(root, undefined);
  }

  get waiting(): number {
    return this.#root.waiting;
  }

  queueOf(roleBudget: RoleBudget): WaitQueue | undefined {
    return this.#nodes.get(roleBudget)?.queue;
  }

  /** True when somebody is ahead of a newcomer to this lane, there or at a budget it shares. */
  isContended(roleBudget: RoleBudget): boolean {
    if (this.#root.waiting === 0) return false;
    if (this.#nodes.has(roleBudget) || this.#root.isBusy) return true;
    for (let budget = roleBudget.above; budget !== undefined; budget = budget.above) {
      const node = this.#nodes.get(budget);
      if (node?.isBusy) return true;
    }
    return false;
  }

  /**
   * At least so many units go before a newcomer with `ahead` units in front of it in its own lane, when lanes take turns
   * at `budget`: no more of a neighbour than it may send by its own windows, and nothing of the turns it owes.
   */
  unitsAhead(budget: Budget, roleBudget: RoleBudget, ahead: number, nowUs: number): number {
    let units = ahead;
    const own = this.#childToward(budget, roleBudget);
    const isInTurn = own !== undefined && own.waiting > 0;
    for (const child of this.#nodes.get(budget)?.children ?? []) {
      if (child === own) continue;
      const first = isInTurn || child.skippedTurns > 0 ? 0 : (child.queue?.first?.units ?? 1);
      const waiting = child.queue?.units ?? child.waiting;
      const sendable = child.budget?.freeUnits(nowUs) ?? waiting;
      units += Math.max(0, Math.min(waiting, sendable, Math.max(first, ahead - child.skippedTurns)));
    }
    return units;
  }

  join(waiter: Waiter): void {
    const node = this.#nodeOf(waiter.roleBudget);
    node.queue?.join(waiter);
    this.#count(node, 1);
    if (node.queue?.length === 1) this.#enqueue(node);
    this.serveReady();
  }

  /** Aborted while waiting: whoever was behind it is let through if it was in the way. */
  leave(waiter: Waiter): void {
    const node = this.#nodes.get(waiter.roleBudget);
    if (node?.queue === undefined || waiter.hasLeft) return;
    const wasFirst = node.queue.first === waiter;
    node.queue.leave(waiter);
    this.epoch += 1;
    this.#count(node, -1);
    if (!wasFirst) return;
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) this.#unpark(at);
    this.serveReady();
  }

  /** Takes everybody out of their lines, first to last, to be put back under other limits. */
  removeAll(): readonly Waiter[] {
    const nodes = [...this.#nodes.values()];
    for (const node of nodes) node.timer?.cancel();
    this.#nodes.clear();
    this.#root.children.clear();
    this.#root.waiting = 0;
    this.#root.parkedFor = undefined;
    return nodes.flatMap(node => node.queue?.drain() ?? []);
  }

  /** Computes again what this lane waits for, ahead of the timers that would do so. */
  retry(roleBudget: RoleBudget): void {
    for (let at = this.#nodes.get(roleBudget); at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
    this.serveReady();
  }

  /** A slot of this budget is free. Call `pump` when all that a request held has been given back. */
  slotFreed(budget: Budget): void {
    const node = budget === this.#root.key ? this.#root : this.#nodes.get(budget);
    if (node?.parkedFor === "slot") this.#unpark(node);
  }

  /** What was foretold for those who wait at this lane, or share a budget with it, no longer holds. */
  markStale(roleBudget: RoleBudget): void {
    this.epoch += 1;
    const queue = this.queueOf(roleBudget);
    if (queue !== undefined) queue.isStale = true;
  }

  /** The windows of this budget may admit earlier, or later, than was computed. Call `pump` when all is said. */
  paceChanged(budget: Budget): void {
    this.epoch += 1;
    const node = this.#nodes.get(budget);
    if (node === undefined) return;
    if (node.queue !== undefined) node.queue.isStale = true;
    // Above it, too: whoever had the turn at a shared budget may have lost it, and must not keep the others waiting.
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
  }

  serveReady(): void {
    // A grant may run code that comes back in here; the outer round goes on and sees what it left.
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#root.isReady && this.#serve(this.#root, this.#time.monotonicUs()) === "went");
    } finally {
      this.#isServing = false;
    }
  }

  #serve(node: SchedulerNode, nowUs: number): ServeOutcome {
    if (node.queue !== undefined) return this.#serveQueue(node, node.queue, nowUs);
    for (const child of node.children) {
      if (child.skippedTurns > 0 && node.children.size > 1) {
        child.skippedTurns -= 1;
        moveToEnd(node.children, child);
        continue;
      }
      const served = this.#serve(child, nowUs);
      if (served === "went") {
        if (child.isReady) moveToEnd(node.children, child);
        else node.children.delete(child);
        return served;
      }
      if (served === "idle" || served === child) {
        // It waits for something of its own, and comes back by itself.
        node.children.delete(child);
        continue;
      }
      if (served === node) this.#park(node);
      return served;
    }
    return "idle";
  }

  #serveQueue(node: SchedulerNode, queue: WaitQueue, nowUs: number): ServeOutcome {
    const waiter = queue.first;
    if (waiter === undefined) return "idle";
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = at.budget?.readyUs(waiter.units, nowUs) ?? 0;
      if (readyUs <= nowUs) continue;
      this.#untilUs = readyUs;
      if (at === node) this.#park(node);
      return at;
    }
    if (!this.#isPeerReady(waiter, queue, nowUs)) {
      this.#untilUs = NEEDS_SLOT;
      this.#park(node);
      return node;
    }
    queue.serve(nowUs);
    this.#count(node, -1);
    if (!this.#issue(waiter, nowUs)) return "went";
    for (let at: SchedulerNode = node; at.above !== undefined && at.above !== this.#root; at = at.above) {
      at.skippedTurns = Math.max(0, waiter.units - 1);
    }
    return "went";
  }

  #park(node: SchedulerNode): void {
    if (this.#untilUs === NEEDS_SLOT) {
      node.parkedFor = "slot";
      return;
    }
    node.parkedFor = "time";
    node.timer = this.#time.setTimer((this.#untilUs - this.#time.monotonicUs()) / 1000, () => {
      this.#unpark(node);
      this.serveReady();
    });
  }

  #unpark(node: SchedulerNode): void {
    node.parkedFor = undefined;
    node.timer?.cancel();
    node.timer = undefined;
    if (node.isReady) this.#enqueue(node);
  }

  /** Puts a place in line for its turn, and with it every place above that is not waiting for something of its own. */
  #enqueue(node: SchedulerNode): void {
    for (let at = node; at.above !== undefined && at.parkedFor === undefined; at = at.above) at.above.children.add(at);
  }

  #nodeOf(key: Budget | string): SchedulerNode {
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const node = new SchedulerNode(key, this.#aboveOf(key));
    this.#nodes.set(key, node);
    return node;
  }

  #aboveOf(key: Budget | string): SchedulerNode {
    if (typeof key === "string") return this.#root;
    if (key.above !== undefined) return this.#nodeOf(key.above);
    // The roles of one host take one turn between them under the global ceiling.
    return key instanceof RoleBudget ? this.#nodeOf(key.name) : this.#root;
  }

  #childToward(budget: Budget, roleBudget: RoleBudget): SchedulerNode | undefined {
    let at: Budget = roleBudget;
    while (at.above !== undefined && at.above !== budget) at = at.above;
    return this.#nodes.get(at);
  }

  /** Counts somebody in or out, and forgets places where nobody waits any more. */
  #count(node: SchedulerNode, change: 1 | -1): void {
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) {
      at.waiting += change;
      if (at.waiting > 0 || at === this.#root) continue;
      at.timer?.cancel();
      at.above?.children.delete(at);
      this.#nodes.delete(at.key);
    }
  }
}

function moveToEnd<T>(set: Set<T>, member: T): void {
  set.delete(member);
  set.add(member);
}
