import type { Time } from "../time/time.ts";
import { type Budget, NEEDS_SLOT } from "./budget.ts";
import { RoleBudget } from "./role-budget.ts";
import { SchedulerNode } from "./scheduler-node.ts";
import type { WaitQueue } from "./wait-queue.ts";
import type { Waiter } from "./waiter.ts";

/** Result of serving a node: a request was served, none below it is ready, or the budget of the named node blocks. */
type ServeOutcome = "served" | "idle" | SchedulerNode;

/**
 * Serves queued requests: first in, first out within a role budget, round robin between the role budgets of a shared
 * budget and between the hosts under the global ceiling (law L3). There is no polling: a node that waits for time arms
 * one timer, a node that waits for a slot is woken by its release, and each wake-up decides again (law L2).
 *
 * A request that has the turn at a shared budget keeps it until that budget has enough units, so that light requests
 * cannot starve a heavy one. It holds no units or slots meanwhile. A request that waits for its own role budget has no
 * turn.
 */
export class Scheduler {
  readonly #time: Time;
  /**
   * Charges and grants a request that every budget admits. False if a breaker denied it and it left the queue instead.
   */
  readonly #issue: (waiter: Waiter, nowUs: number) => boolean;
  /**
   * Whether shared leases and breaker records allow the request. If not, the store is asked, and `slotFreed` follows.
   */
  readonly #isPeerReady: (waiter: Waiter, queue: WaitQueue, nowUs: number) => boolean;
  readonly #nodes = new Map<Budget | string, SchedulerNode>();
  readonly #root: SchedulerNode;
  #untilUs = 0;
  #isServing = false;
  /**
   * Grows with each change that may affect the estimates of other role budgets: requests that leave, returned units, a
   * new pace.
   */
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
    this.serveReady();
  }

  /** Removes a request that was aborted or refused. Requests that it blocked are served. */
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

  /** Empties all queues; each in its order. The caller queues the requests again under new limits. */
  removeAll(): readonly Waiter[] {
    const nodes = [...this.#nodes.values()];
    for (const node of nodes) node.timer?.cancel();
    this.#nodes.clear();
    this.#root.children.clear();
    this.#root.waiting = 0;
    this.#root.parkedFor = undefined;
    return nodes.flatMap(node => node.queue?.drain() ?? []);
  }

  /** Decides again for this role budget now, instead of at its timers. */
  retry(roleBudget: RoleBudget): void {
    for (let at = this.#nodes.get(roleBudget); at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
    this.serveReady();
  }

  /** A slot of this budget is free. Call `serveReady` once every slot of the request has been freed. */
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

  /** The windows of this budget may admit earlier or later than estimated. Call `serveReady` after the last change. */
  paceChanged(budget: Budget): void {
    this.epoch += 1;
    const node = this.#nodes.get(budget);
    if (node === undefined) return;
    if (node.queue !== undefined) node.queue.isStale = true;
    // The nodes above too: the request that has the turn there may be held now, and must not block the others.
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
  }

  serveReady(): void {
    // A grant may call listeners that call this method again. The outer loop continues with the changed state.
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#root.isReady && this.#serve(this.#root, this.#time.monotonicUs()) === "served");
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
      const outcome = this.#serve(child, nowUs);
      if (outcome === "served") {
        if (child.isReady) moveToEnd(node.children, child);
        else node.children.delete(child);
        return outcome;
      }
      if (outcome === "idle" || outcome === child) {
        // The child waits for its own budget; `#unpark` or `join` adds it again.
        node.children.delete(child);
        continue;
      }
      if (outcome === node) this.#park(node);
      return outcome;
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
    if (!this.#issue(waiter, nowUs)) return "served";
    for (let at: SchedulerNode = node; at.above !== undefined && at.above !== this.#root; at = at.above) {
      at.skippedTurns = Math.max(0, waiter.units - 1);
    }
    return "served";
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

  /** Gives a node a turn at its parent, and so on upward, up to the first node that waits for its own budget. */
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
    // The roles of one host share one turn under the global ceiling.
    return key instanceof RoleBudget ? this.#nodeOf(key.name) : this.#root;
  }

  #childToward(budget: Budget, roleBudget: RoleBudget): SchedulerNode | undefined {
    let at: Budget = roleBudget;
    while (at.above !== undefined && at.above !== budget) at = at.above;
    return this.#nodes.get(at);
  }

  /** Counts a request in or out, and removes nodes without waiting requests. */
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
