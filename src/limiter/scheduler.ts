import type { Constraint } from "../errors.ts";
import type { Time } from "../time/time.ts";
import { type Budget, budgetsAbove, NEEDS_SLOT } from "./budget.ts";
import { skipRounds } from "./child-turns.ts";
import { RoleBudget } from "./role-budget.ts";
import { keyAbove, SchedulerNode, topOf } from "./scheduler-node.ts";
import { StartEstimates } from "./start-estimates.ts";
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
  /** The request at which a budget blocked the last search, and when that budget has capacity for it. */
  #blocked: Waiter | undefined;
  #untilUs = 0;
  #timersSet = 0;
  readonly estimates: StartEstimates;

  constructor(root: Budget, time: Time, wake: () => void) {
    this.#time = time;
    this.#wake = wake;
    this.#root = new SchedulerNode(root, undefined);
    this.estimates = new StartEstimates(time, wake, this.#nodes);
  }

  get waiting(): number {
    return this.#root.waiting;
  }

  queueOf(roleBudget: RoleBudget): WaitQueue | undefined {
    return this.#nodes.get(roleBudget)?.queue;
  }

  /** True if no request waits for this role budget or for a budget above it, so that its budgets alone decide. */
  isIdle(roleBudget: RoleBudget): boolean {
    return this.#root.waiting === 0 || topOf(this.#nodes, roleBudget) === undefined;
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

  join(waiter: Waiter): void {
    const nowUs = this.#time.monotonicUs();
    const node = this.#nodeOf(waiter.roleBudget);
    waiter.joined(node, nowUs);
    node.queue?.join(waiter);
    this.#count(node, waiter, 1);
    if (node.queue?.length === 1) this.#enqueue(node);
    // The requests before it wait for an answer that may come after its bound.
    if (node.parkedFor === "slot" && waiter.ownBoundUs <= waiter.roleBudget.aloneUntilUs) this.#unpark(node);
    this.estimates.joined(waiter, nowUs);
  }

  /** Removes a request that was aborted or refused. Requests that it blocked may be ready then. */
  leave(waiter: Waiter): void {
    const node = this.#nodes.get(waiter.roleBudget);
    if (node?.queue === undefined || waiter.hasLeft) return;
    const wasFirst = node.queue.first === waiter;
    this.estimates.changed(waiter.roleBudget);
    waiter.leftQueue(this.#time.monotonicUs());
    node.queue.leave(waiter);
    this.#count(node, waiter, -1);
    if (!wasFirst) return;
    // A node that another request has parked keeps its place: it is not ready.
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above)
      if (at.parkedFor === undefined || at.parkedBy === waiter) this.#unpark(at);
  }

  waiters(): readonly Waiter[] {
    return [...this.#nodes.values()].flatMap(node => node.queue?.all() ?? []);
  }

  /** Empties all queues; each in its order. The caller queues the requests again under new limits. */
  removeAll(): readonly Waiter[] {
    const nowUs = this.#time.monotonicUs();
    const nodes = [...this.#nodes.values()];
    const waiters = this.waiters();
    for (const waiter of waiters) waiter.leftQueue(nowUs);
    for (const node of nodes) {
      const { timer, budget, waiting } = node;
      timer?.cancel();
      this.estimates.forget(node);
      this.#remove(node);
      if (budget instanceof RoleBudget) budget.waiting -= waiting;
    }
    this.#root.children.clear();
    this.#root.below.clear();
    this.#root.waiting = 0;
    this.#root.bounded = 0;
    this.#root.unpark(nowUs);
    return waiters;
  }

  /** Decides again for this role budget at the next search, instead of at its timers. */
  hasten(roleBudget: RoleBudget): void {
    for (let at = this.#nodes.get(roleBudget); at !== undefined; at = at.above)
      if (at.parkedFor === "time") this.#unpark(at);
  }

  /** The store has leased units to the role budget. It gets the turn, so that it does not hold them while others wait. */
  giveTurn(roleBudget: RoleBudget): void {
    for (let at = this.#nodes.get(roleBudget); at?.above?.budget !== undefined; at = at.above) {
      if (at.isReady) at.above.children.moveToFront(at);
      if (at.above.parkedFor === "time") this.#unpark(at.above);
    }
  }

  /** A slot of this budget is free. */
  slotFreed(budget: Budget): void {
    const node = budget === this.#root.key ? this.#root : this.#nodes.get(budget);
    if (node?.parkedFor !== "slot") return;
    this.#unpark(node);
    this.estimates.drop(budget);
  }

  /** The windows of this budget may admit earlier or later than estimated. */
  paceChanged(budget: Budget): void {
    this.estimates.changed(budget);
    const node = this.#nodes.get(budget);
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

  /** The request that has the turn at the widest budget that this role budget shares, as soon as the budgets admit it. */
  nextBeside(roleBudget: RoleBudget): Waiter | undefined {
    const widest = budgetsAbove(roleBudget).at(-1);
    let node = widest && this.#nodes.get(widest);
    while (node !== undefined && node.queue === undefined) [node] = node.children;
    return node?.queue?.first;
  }

  /** Takes the request that has the turn out of its queue, and passes the turn on. */
  take(waiter: Waiter, nowUs: number): void {
    const { roleBudget, estimatedUs } = waiter;
    const node = this.#nodeOf(roleBudget);
    if (estimatedUs !== undefined) this.estimates.delayed(roleBudget, nowUs - estimatedUs);
    waiter.leftQueue(nowUs);
    node.queue?.serve();
    this.#count(node, waiter, -1);
    if (this.#hasOvertaken(node)) this.estimates.changed(roleBudget);
    // With a shared store, a turn lasts as long as the units that were leased in it.
    if (node.isReady && waiter.units > 0 && roleBudget.holdsUnits(waiter.units + 1)) return;
    for (let at = node; at.above !== undefined; at = at.above) {
      at.keepsTurn = false;
      if (at.isReady) at.above.children.moveToEnd(at);
      else at.above.children.delete(at);
    }
  }

  /** The request that was taken was granted. A heavy one costs its nodes turns at the budgets that they share. */
  granted({ roleBudget, units }: Waiter): void {
    // With a shared store, one turn of the others may be several units.
    const turns = Math.ceil(units / (roleBudget.unitLease?.turnUnits ?? 1));
    const skippedTurns = units === 0 || roleBudget.holdsUnits(1) ? 0 : turns - 1;
    let key: Budget | string = roleBudget;
    for (let above = keyAbove(key); above !== undefined; above = keyAbove(key)) {
      const node = this.#nodes.get(key);
      if (node !== undefined) node.skippedTurns = skippedTurns;
      key = above;
    }
    this.estimates.granted(roleBudget);
  }

  /**
   * The request that has the turn lacks something that the budgets of this process do not have: a lease, or
   * capacity of `limit` if the limit is known. `slotFreed` gives it a turn again.
   */
  park(waiter: Waiter, limit: Constraint | undefined): void {
    const node = this.#nodeOf(waiter.roleBudget);
    const nowUs = this.#time.monotonicUs();
    if (limit === undefined) node.parkForStore(waiter, nowUs);
    else node.parkForSlot(waiter, nowUs, limit);
    node.above?.children.delete(node);
    for (let at: SchedulerNode | undefined = node; at?.above?.budget !== undefined; at = at.above) at.keepsTurn = true;
  }

  /** All units that this budget may have are requested from the store: the next reply unparks it. */
  parkAt(budget: Budget, waiter: Waiter): void {
    const node = this.#nodeOf(budget);
    node.parkForSlot(waiter, this.#time.monotonicUs(), undefined);
    node.above?.children.delete(node);
  }

  /**
   * Whether a queue with the same shared budget waits for an answer or for the store. Estimates let it start now, so a
   * unit that another queue takes makes it later.
   */
  #hasOvertaken(node: SchedulerNode): boolean {
    for (let at = node; at.above !== undefined && at.above !== this.#root; at = at.above)
      for (const other of at.above.below)
        if (other !== at && other.parkedFor === "slot" && other.budget?.hasSlot !== false) return true;
    return false;
  }

  #search(node: SchedulerNode, nowUs: number): SearchOutcome {
    if (node.queue !== undefined) return this.#searchQueue(node, node.queue, nowUs);
    let skipped = 0;
    for (const child of node.children) {
      if (child.skippedTurns > 0 && node.children.size > 1) {
        child.skippedTurns -= 1;
        node.children.moveToEnd(child);
        skipped += 1;
        if (skipped % node.children.size === 0) skipRounds(node.children);
        continue;
      }
      // The turns that it skips are those of children for which the store is asked, if they need the same units.
      if (child.skippedTurns > 0 && node.askingBelow > 0 && node.sharesRates) return "idle";
      const outcome = this.#search(child, nowUs);
      if (outcome === "idle" || outcome === child) {
        // The child waits for its own budget; `#unpark` or `join` adds it again.
        node.children.delete(child);
        if (outcome === child) this.#leaveTurn(child, nowUs);
        continue;
      }
      // The child keeps the turn until the budget that blocks has enough units: no other child goes first meanwhile.
      if (outcome !== "ready") child.skippedTurns = 0;
      if (outcome === node) this.#parkUntilReady(node);
      return outcome;
    }
    return "idle";
  }

  /** The child waits for its own budget: it loses its turn, unless only the store delays it. */
  #leaveTurn(child: SchedulerNode, nowUs: number): void {
    const charge = child.queue?.first?.charge;
    child.keepsTurn = charge !== undefined && child.budget instanceof RoleBudget && child.budget.admits(charge, nowUs);
  }

  #searchQueue(node: SchedulerNode, queue: WaitQueue, nowUs: number): SearchOutcome {
    const waiter = queue.first;
    if (waiter === undefined) return "idle";
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = at.budget === undefined ? 0 : waiter.roleBudget.readyAtUs(at.budget, waiter.charge, nowUs);
      if (readyUs <= nowUs) continue;
      this.#untilUs = readyUs;
      this.#blocked = waiter;
      if (at === node) this.#parkUntilReady(node);
      return at;
    }
    const { aloneUntilUs } = waiter.roleBudget;
    // Without an answer until then, a request whose bound ends earlier would be refused although units are free.
    if (aloneUntilUs > nowUs && waiter.units > 0 && !queue.hasBoundBefore(aloneUntilUs)) {
      this.#parkUntilAnswered(node, waiter, nowUs);
      return node;
    }
    this.#ready = waiter;
    return "ready";
  }

  #parkUntilReady(node: SchedulerNode): void {
    const { budget } = node;
    const waiter = this.#blocked;
    // Only a budget blocks.
    if (budget === undefined || waiter === undefined) return;
    const nowUs = this.#time.monotonicUs();
    if (this.#untilUs === NEEDS_SLOT) {
      node.parkForSlot(waiter, nowUs, budget.slotConstraint(node === this.#root ? "max_inflight" : "max_concurrent"));
      return;
    }
    node.parkForTime(waiter, budget.constraint(waiter.charge, nowUs));
    node.untilUs = this.#untilUs;
    this.#timersSet += 1;
    node.timerNumber = this.#timersSet;
    node.timer = this.#time.setTimer((this.#untilUs - nowUs) / 1000, () => {
      this.#unpark(node);
      this.#wake();
    });
  }

  /**
   * Parks the node as if it lacked a slot: the answer to the request in flight unparks it, or the timer at
   * `aloneUntilUs` does.
   */
  #parkUntilAnswered(node: SchedulerNode, waiter: Waiter, nowUs: number): void {
    node.parkForSlot(waiter, nowUs, undefined);
    const { aloneUntilUs } = waiter.roleBudget;
    node.timer = this.#time.setTimer((aloneUntilUs - nowUs) / 1000, () => {
      this.#unpark(node);
      this.#wake();
    });
  }

  #unpark(node: SchedulerNode): void {
    node.unpark(this.#time.monotonicUs());
    if (node.isReady) this.#enqueue(node);
  }

  /** Gives a node a turn at its parent, and so on upward, up to the first node that waits for its own budget. */
  #enqueue(node: SchedulerNode): void {
    for (let at = node; at.above !== undefined && at.parkedFor === undefined; at = at.above)
      at.above.children.add(at, at.keepsTurn);
  }

  #nodeOf(key: Budget | string): SchedulerNode {
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const aboveKey = keyAbove(key);
    const above = aboveKey === undefined ? this.#root : this.#nodeOf(aboveKey);
    const node = new SchedulerNode(key, above);
    above.below.add(node);
    this.#nodes.set(key, node);
    if (key instanceof RoleBudget) for (const at of budgetsAbove(key)) at.waitingBelow += 1;
    return node;
  }

  #remove({ key }: SchedulerNode): void {
    this.#nodes.delete(key);
    if (key instanceof RoleBudget) for (const at of budgetsAbove(key)) at.waitingBelow -= 1;
  }

  /** Counts a request in or out, and removes nodes without waiting requests. */
  #count(node: SchedulerNode, { isBounded }: Waiter, change: 1 | -1): void {
    if (node.budget instanceof RoleBudget) node.budget.waiting += change;
    for (let at: SchedulerNode | undefined = node; at !== undefined; at = at.above) {
      at.waiting += change;
      if (isBounded) at.bounded += change;
      if (at.waiting > 0 || at === this.#root) continue;
      at.timer?.cancel();
      at.above?.children.delete(at);
      at.above?.below.delete(at);
      this.estimates.forget(at);
      this.#remove(at);
    }
  }
}
