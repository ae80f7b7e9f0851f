import type { Time } from "../time/time.ts";
import { type Budget, NEEDS_SLOT } from "./budget.ts";
import { RoleBudget } from "./role-budget.ts";
import { SchedulerNode } from "./scheduler-node.ts";
import type { WaitQueue } from "./wait-queue.ts";
import type { Waiter } from "./waiter.ts";

/** Result of a search below a node: a request is ready, none is, or the budget of the named node blocks. */
type SearchOutcome = "ready" | "idle" | SchedulerNode;

/**
 * Decides which queued request is next: first in, first out within a role budget, round robin between the role budgets
 * of a shared budget and between the hosts under the global ceiling (law L3). It grants nothing itself: `next` names the
 * request that has the turn, and the caller answers with `take` or `park`. There is no polling: a node that waits for time
 * arms one timer, which calls `wake`; a node that waits for a slot is unparked by its release. After each the caller
 * asks again (law L2).
 *
 * A request that has the turn at a shared budget keeps it until that budget has enough units, so that light requests
 * cannot starve a heavy one. It holds no units or slots meanwhile. A request that waits for its own role budget has no
 * turn.
 */
export class Scheduler {
  readonly #time: Time;
  /** Called when time has passed that a node waited for: `next` may name it now. */
  readonly #wake: () => void;
  readonly #nodes = new Map<Budget | string, SchedulerNode>();
  readonly #root: SchedulerNode;
  /** The request that the last search found ready. */
  #ready: Waiter | undefined;
  /** When the budget that blocked the last search has capacity. */
  #untilUs = 0;
  /**
   * Grows with each change that may affect the estimates of other role budgets: requests that leave, returned units, a
   * new pace.
   */
  epoch = 0;

  constructor(root: Budget, time: Time, wake: () => void) {
    this.#time = time;
    this.#wake = wake;
    this.#root = new SchedulerNode(root, undefined);
  }

  get waiting(): number {
    return this.#root.waiting;
  }

  queueOf(roleBudget: RoleBudget): WaitQueue | undefined {
    return this.#nodes.get(roleBudget)?.queue;
  }

  /** True if queued requests precede a new one of this role budget, there or at a budget above it. */
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
   * Lower bound of the units that `budget` serves before a new request that has `ahead` units before it in its own
   * queue. Role budgets take turns there: each other one counts with no more than its own windows allow now, and
   * without the turns that it has to skip.
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
  }

  /** Removes a request that was aborted or refused. Requests that it blocked may be ready then. */
  leave(waiter: Waiter): void {
    const node = this.#nodes.get(waiter.roleBudget);
    if (node?.queue === undefined || waiter.hasLeft) return;
    const wasFirst = node.queue.first === waiter;
    node.queue.leave(waiter);
    this.epoch += 1;
    this.#count(node, -1);
    if (!wasFirst) return;
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) this.#unpark(at);
  }

  /** Empties all queues; each in its order. The caller queues the requests again under new limits. */
  removeAll(): readonly Waiter[] {
    const nodes = [...this.#nodes.values()];
    for (const { timer, budget, waiting } of nodes) {
      timer?.cancel();
      if (budget instanceof RoleBudget) budget.waiting -= waiting;
    }
    this.#nodes.clear();
    this.#root.children.clear();
    this.#root.waiting = 0;
    this.#root.parkedFor = undefined;
    return nodes.flatMap(node => node.queue?.drain() ?? []);
  }

  /** Decides again for this role budget at the next search, instead of at its timers. */
  hasten(roleBudget: RoleBudget): void {
    for (let at = this.#nodes.get(roleBudget); at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
  }

  /** A slot of this budget is free. */
  slotFreed(budget: Budget): void {
    const node = budget === this.#root.key ? this.#root : this.#nodes.get(budget);
    if (node?.parkedFor === "slot") this.#unpark(node);
  }

  /** The estimates for this role budget, and for those that share a budget with it, no longer hold. */
  markStale(roleBudget: RoleBudget): void {
    this.epoch += 1;
    const queue = this.queueOf(roleBudget);
    if (queue !== undefined) queue.isStale = true;
  }

  /** The windows of this budget may admit earlier or later than estimated. */
  paceChanged(budget: Budget): void {
    this.epoch += 1;
    const node = this.#nodes.get(budget);
    if (node === undefined) return;
    if (node.queue !== undefined) node.queue.isStale = true;
    // The nodes above too: the request that has the turn there may be held now, and must not block the others.
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
  }

  /**
   * The request that has the turn: every budget of this process admits it now. Undefined if there is none. Nodes that
   * lack time or a slot are parked on the way.
   */
  next(nowUs: number): Waiter | undefined {
    return this.#root.isReady && this.#search(this.#root, nowUs) === "ready" ? this.#ready : undefined;
  }

  /** Takes the request that has the turn out of its queue, and passes the turn on. */
  take({ roleBudget }: Waiter, nowUs: number): void {
    const node = this.#nodeOf(roleBudget);
    node.queue?.serve(nowUs);
    this.#count(node, -1);
    for (let at = node; at.above !== undefined; at = at.above) {
      if (at.isReady) moveToEnd(at.above.children, at);
      else at.above.children.delete(at);
    }
  }

  /** The request that was taken was granted. A heavy one costs its nodes turns at the budgets that they share. */
  granted({ roleBudget, units }: Waiter): void {
    let key: Budget | string = roleBudget;
    for (let above = keyAbove(key); above !== undefined; above = keyAbove(key)) {
      const node = this.#nodes.get(key);
      if (node !== undefined) node.skippedTurns = Math.max(0, units - 1);
      key = above;
    }
  }

  /** The request that has the turn lacks what no budget of this process knows. `slotFreed` puts it in turn again. */
  park({ roleBudget }: Waiter): void {
    const node = this.#nodeOf(roleBudget);
    node.parkedFor = "slot";
    node.above?.children.delete(node);
  }

  #search(node: SchedulerNode, nowUs: number): SearchOutcome {
    if (node.queue !== undefined) return this.#searchQueue(node, node.queue, nowUs);
    for (const child of node.children) {
      if (child.skippedTurns > 0 && node.children.size > 1) {
        child.skippedTurns -= 1;
        moveToEnd(node.children, child);
        continue;
      }
      const outcome = this.#search(child, nowUs);
      if (outcome === "idle" || outcome === child) {
        // The child waits for its own budget; `#unpark` or `join` adds it again.
        node.children.delete(child);
        continue;
      }
      if (outcome === node) this.#parkUntilReady(node);
      return outcome;
    }
    return "idle";
  }

  #searchQueue(node: SchedulerNode, queue: WaitQueue, nowUs: number): SearchOutcome {
    const waiter = queue.first;
    if (waiter === undefined) return "idle";
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = at.budget?.readyUs(waiter.units, nowUs) ?? 0;
      if (readyUs <= nowUs) continue;
      this.#untilUs = readyUs;
      if (at === node) this.#parkUntilReady(node);
      return at;
    }
    this.#ready = waiter;
    return "ready";
  }

  #parkUntilReady(node: SchedulerNode): void {
    if (this.#untilUs === NEEDS_SLOT) {
      node.parkedFor = "slot";
      return;
    }
    node.parkedFor = "time";
    node.timer = this.#time.setTimer((this.#untilUs - this.#time.monotonicUs()) / 1000, () => {
      this.#unpark(node);
      this.#wake();
    });
  }

  #unpark(node: SchedulerNode): void {
    node.parkedFor = undefined;
    node.timer?.cancel();
    node.timer = undefined;
    if (node.isReady) this.#enqueue(node);
  }

  /** Gives a node a turn at its parent, and so on upward, up to the first node that waits for its own budget. */
  #enqueue(node: SchedulerNode): void {
    for (let at = node; at.above !== undefined && at.parkedFor === undefined; at = at.above) at.above.children.add(at);
  }

  #nodeOf(key: Budget | string): SchedulerNode {
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const above = keyAbove(key);
    const node = new SchedulerNode(key, above === undefined ? this.#root : this.#nodeOf(above));
    this.#nodes.set(key, node);
    return node;
  }

  #childToward(budget: Budget, roleBudget: RoleBudget): SchedulerNode | undefined {
    let at: Budget = roleBudget;
    while (at.above !== undefined && at.above !== budget) at = at.above;
    return this.#nodes.get(at);
  }

  /** Counts a request in or out, and removes nodes without waiting requests. */
  #count(node: SchedulerNode, change: 1 | -1): void {
    if (node.budget instanceof RoleBudget) node.budget.waiting += change;
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) {
      at.waiting += change;
      if (at.waiting > 0 || at === this.#root) continue;
      at.timer?.cancel();
      at.above?.children.delete(at);
      this.#nodes.delete(at.key);
    }
  }
}

/** The key of the node above; undefined for the root. The roles of one host share one turn under the global ceiling. */
function keyAbove(key: Budget | string): Budget | string | undefined {
  if (typeof key === "string") return undefined;
  return key.above ?? (key instanceof RoleBudget ? key.name : undefined);
}

function moveToEnd<T>(set: Set<T>, member: T): void {
  set.delete(member);
  set.add(member);
}
