import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import { type Charge, isSameCharge, NO_CHARGE } from "./charge.ts";
import { skipRounds } from "./child-turns.ts";
import { EstimatedBudget } from "./estimated-budget.ts";
import { type EstimatedEntry, EstimatedNode, entryOf, type LateGroup } from "./estimated-node.ts";
import type { RoleBudget } from "./role-budget.ts";
import { keyAbove, type SchedulerNode } from "./scheduler-node.ts";
import type { Waiter } from "./waiter.ts";

/** When a request starts, and which limit delays it. */
export interface EstimatedStart {
  /** Infinity if a slot is missing, whose release is unknown. */
  readonly startUs: number;
  readonly constraint: Constraint | undefined;
}

/** A request that cannot start within its bound. It starts at `startUs` or later. */
export interface LateWaiter extends EstimatedStart {
  readonly waiter: Waiter;
  readonly group: LateGroup;
}

/**
 * When the queued requests below one budget start if nothing else arrives: it simulates the rules of the `Scheduler`
 * ahead of time. A slot that is taken stays taken, because its release is unknown; a request that starts in the
 * estimate takes none. Units that are granted but not yet written count as written now.
 *
 * A request that cannot start within its bound is left out from then on, as if it were refused now.
 */
export class QueueEstimate {
  readonly #nodes = new Map<Budget | string, EstimatedNode>();
  readonly #root = new EstimatedNode(undefined, undefined);
  /** Nodes that wait for time, in no order: at most one for each role budget with a queue, and those above. */
  readonly #parked = new Set<EstimatedNode>();
  readonly #late: LateWaiter[] = [];
  readonly #slotsIgnored = new Set<Budget>();
  readonly #refused: ReadonlySet<Waiter>;
  /** When it was made. */
  readonly madeUs: number;
  /** The shortest time between the start of a decided request and the end of its bound. */
  slackUs = Number.POSITIVE_INFINITY;
  /** Whether the bound of a decided request is over, although the rates do not make it late: it can wait no longer. */
  hasDue = false;
  /** The instant up to which the estimate has run. */
  #atUs: number;
  /** Requests with a bound that are not decided yet. */
  #undecidedBounded = 0;
  #queueCount = 0;
  /** It was made for requests that are only supposed, or that may be late: it judges none. */
  #isQuestion = false;
  /** When the budget that blocked the last search has capacity, and for which charge. */
  #blockedUntilUs = 0;
  #blockedCharge: Charge = NO_CHARGE;
  #timersSet = 0;

  /**
   * `top` is the node below the scheduler's root; undefined if nothing waits there. Slots of the budgets that requests of
   * `slotsIgnored` pass count as free. Requests in `refused` are left out.
   */
  constructor(
    top: SchedulerNode | undefined,
    nowUs: number,
    slotsIgnored?: Budget,
    refused: ReadonlySet<Waiter> = new Set(),
  ) {
    this.#refused = refused;
    this.madeUs = nowUs;
    this.#atUs = nowUs;
    for (let at: Budget | undefined = slotsIgnored; at; at = at.above) this.#slotsIgnored.add(at);
    if (top !== undefined) this.#copy(top, this.#root);
  }

  /**
   * Whether a unit is granted and not written now, even one that was granted since the estimate was made. It counts as
   * written now, so that starts become later until it is written.
   */
  get hasPending(): boolean {
    for (const { budget } of this.#nodes.values()) if (budget?.hasPending) return true;
    return false;
  }

  /** Whether all its requests are in one queue. Then a request that joins it later delays none of them. */
  get isOneQueue(): boolean {
    return this.#queueCount === 1;
  }

  /**
   * The requests that cannot start within their bounds, in the order in which the estimate finds them; each is returned
   * once.
   */
  takeLate(): readonly LateWaiter[] {
    // The estimate of one queue is kept. It is completed at once: later the log has dropped stamps that it needs.
    this.#run(() => this.#undecidedBounded === 0 && !this.isOneQueue);
    return this.#late.splice(0);
  }

  /** A request has joined the queue of its role budget, as the last one. */
  append(waiter: Waiter, nowUs: number): void {
    // The requests before it start before the time moves on.
    this.#run(() => false);
    this.#atUs = Math.max(this.#atUs, nowUs);
    this.#join(waiter.roleBudget, this.#entryOf(waiter));
  }

  /**
   * When a new request would start if it joined the queue of its role budget last. The estimate then contains it, so
   * call this only once.
   */
  startOf(roleBudget: RoleBudget, charge: Charge): EstimatedStart {
    this.#isQuestion = true;
    const entry = entryOf(charge, Number.POSITIVE_INFINITY, undefined, this.#atUs);
    const node = this.#join(roleBudget, entry);
    return this.#startOfEntry(node, entry);
  }

  /**
   * When a new usual request of each role budget would start if it were the only new one. All of them are added to one simulation, in
   * which they take no capacity and no turn. If several budgets above a role budget lack capacity, the start is a lower bound.
   */
  startsOf(roleBudgets: readonly RoleBudget[]): [RoleBudget, EstimatedStart][] {
    this.#isQuestion = true;
    const probes = roleBudgets.map(roleBudget => {
      const entry = entryOf(roleBudget.usualCharge, Number.POSITIVE_INFINITY, undefined, this.#atUs);
      entry.isAsked = true;
      entry.isProbe = true;
      return { roleBudget, entry, node: this.#join(roleBudget, entry) };
    });
    this.#run(() => false);
    return probes.map(({ roleBudget, entry, node }) => [roleBudget, startOfEntry(node, entry)]);
  }

  /**
   * The same, without adding the request, so it may be called any number of times. Undefined if a request of the queue
   * waits for a slot, or if there are other queues.
   */
  peek(roleBudget: RoleBudget, charge: Charge, nowUs: number): EstimatedStart | undefined {
    const node = this.#nodes.get(roleBudget);
    if (!this.isOneQueue || node === undefined) return undefined;
    this.#run(() => node.isEmpty);
    if (!node.isEmpty) return undefined;
    let startUs = Math.max(this.#atUs, nowUs);
    let constraint = node.delayedBy(nowUs);
    for (let at: EstimatedNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = readyAtUs(at, node, charge);
      if (readyUs <= startUs) continue;
      startUs = readyUs;
      constraint = at.budget?.constraint(charge);
    }
    return { startUs, constraint };
  }

  /** When a queued request starts, if no bound and no missing slot of its own budgets keeps it from starting. */
  startOfQueued(waiter: Waiter): EstimatedStart {
    this.#isQuestion = true;
    const node = this.#nodeOf(waiter.roleBudget);
    const entry = node.queue.find(queued => queued.waiter === waiter);
    if (entry === undefined) return { startUs: Number.POSITIVE_INFINITY, constraint: undefined };
    entry.latestUs = Number.POSITIVE_INFINITY;
    return this.#startOfEntry(node, entry);
  }

  #startOfEntry(node: EstimatedNode, entry: EstimatedEntry): EstimatedStart {
    entry.isAsked = true;
    this.#run(() => entry.startUs !== undefined);
    return startOfEntry(node, entry);
  }

  #copy(node: SchedulerNode, above: EstimatedNode): EstimatedNode {
    const copy = new EstimatedNode(above, node.budget && this.#budgetOf(node.budget));
    this.#nodes.set(node.key, copy);
    copy.skippedTurns = node.skippedTurns;
    if (node.queue !== undefined) this.#queueCount += 1;
    for (const waiter of node.queue?.all() ?? [])
      if (!this.#refused.has(waiter)) this.#push(copy, this.#entryOf(waiter));
    // Children that are ready have a turn, in their order, after those for which the store is asked; the others wait for
    // their own budgets.
    for (const child of node.below) if (child.isAsking) copy.children.add(this.#copy(child, copy));
    for (const child of node.children) copy.children.add(this.#copy(child, copy));
    for (const child of node.below) if (!child.isAsking && !node.children.has(child)) this.#copy(child, copy);
    if (node.parkedFor === undefined || node.isAsking) {
      if (copy.isReady) above.children.add(copy);
      return copy;
    }
    copy.isParked = true;
    if (node.parkedFor === "time") {
      this.#timersSet = Math.max(this.#timersSet, node.timerNumber);
      copy.parkedLimit = node.timeParking?.limit;
      this.#setTimer(copy, node.untilUs, node.timerNumber);
    } else if (copy.budget?.hasSlot !== false) {
      // It waits for a reply of the store, or for a slot that is ignored: in the estimate it has both now.
      this.#setTimer(copy, this.madeUs, 0);
    }
    return copy;
  }

  #join(roleBudget: RoleBudget, entry: EstimatedEntry): EstimatedNode {
    const node = this.#nodeOf(roleBudget);
    this.#push(node, entry);
    if (node.queue.length - node.head === 1) this.#enqueue(node);
    return node;
  }

  #push(node: EstimatedNode, entry: EstimatedEntry): void {
    node.queue.push(entry);
    if (entry.latestUs < Number.POSITIVE_INFINITY) this.#undecidedBounded += 1;
  }

  #entryOf(waiter: Waiter): EstimatedEntry {
    return entryOf(waiter.charge, waiter.latestUs(this.madeUs), waiter, this.#atUs);
  }

  #budgetOf(budget: Budget): EstimatedBudget {
    return new EstimatedBudget(budget, this.madeUs, this.#slotsIgnored.has(budget));
  }

  #nodeOf(key: Budget | string): EstimatedNode {
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const above = keyAbove(key);
    const budget = typeof key === "string" ? undefined : this.#budgetOf(key);
    const node = new EstimatedNode(above === undefined ? this.#root : this.#nodeOf(above), budget);
    this.#nodes.set(key, node);
    return node;
  }

  /** Runs the simulation until `isDone` returns true, or until nothing more can start. */
  #run(isDone: () => boolean): void {
    while (!isDone()) {
      if (this.#root.children.size > 0) {
        this.#serve(this.#root);
        continue;
      }
      const next = this.#nextParked();
      if (next === undefined) return;
      this.#atUs = Math.max(this.#atUs, next.untilUs);
      this.#unpark(next);
    }
  }

  /** As `Scheduler`: the result is "served", "idle", or the node whose budget blocks. */
  #serve(node: EstimatedNode): "served" | "idle" | EstimatedNode {
    if (!node.isEmpty) return this.#serveQueue(node);
    let skipped = 0;
    for (const child of node.children) {
      if (child.skippedTurns > 0 && node.children.size > 1) {
        child.skippedTurns -= 1;
        node.children.delete(child);
        node.children.add(child);
        skipped += 1;
        if (skipped % node.children.size === 0) skipRounds(node.children);
        continue;
      }
      const outcome = this.#serve(child);
      if (outcome === "served") {
        node.children.delete(child);
        if (child.isReady) node.children.add(child);
        return outcome;
      }
      if (outcome === "idle" || outcome === child) {
        node.children.delete(child);
        continue;
      }
      child.skippedTurns = 0;
      if (outcome === node) this.#park(node);
      return outcome;
    }
    return "idle";
  }

  #serveQueue(node: EstimatedNode): "served" | "idle" | EstimatedNode {
    for (;;) {
      const entry = node.queue[node.head];
      if (entry === undefined) return "idle";
      const { charge } = entry;
      const blocking = this.#blocking(node, charge);
      if (entry.isProbe && blocking !== node) {
        const last = this.#lastReady(node, charge);
        const lastUs = readyAtUs(last, node, charge);
        const limit = lastUs > this.#atUs ? last.budget?.constraint(charge) : undefined;
        this.#decide(node, entry, Math.max(this.#atUs, lastUs), limit);
        continue;
      }
      const readyUs = blocking === undefined ? this.#atUs : this.#blockedUntilUs;
      if (readyUs < Number.POSITIVE_INFINITY && readyUs > entry.latestUs && !this.#isDue(node, entry)) {
        this.#decide(node, entry, readyUs, (blocking ?? this.#lastReady(node, charge)).budget?.constraint(charge));
        continue;
      }
      if (blocking !== undefined) {
        this.#blockedCharge = charge;
        if (blocking === node) this.#park(node);
        return blocking;
      }
      this.#decide(node, entry, readyUs);
      for (let at: EstimatedNode | undefined = node; at !== undefined; at = at.above)
        at.budget?.charge(charge, readyUs);
      for (let at: EstimatedNode = node; at.above !== undefined && at.above !== this.#root; at = at.above)
        at.skippedTurns = Math.max(0, charge.units - 1);
      return "served";
    }
  }

  /**
   * Whether the rates do not make the request late: its budgets had capacity in time. It waits for a slot or for a reply
   * of the store, or this process was too late to use the capacity.
   */
  #isDue(node: EstimatedNode, { charge, latestUs, waiter }: EstimatedEntry): boolean {
    if (waiter === undefined || this.#atUs > this.madeUs) return false;
    for (let at: EstimatedNode | undefined = node; at !== undefined; at = at.above)
      if (readyAtUs(at, node, charge) > latestUs) return false;
    return true;
  }

  /** The lowest node whose budget does not admit the units now; `#blockedUntilUs` is then its time. */
  #blocking(node: EstimatedNode, charge: Charge): EstimatedNode | undefined {
    for (let at: EstimatedNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = readyAtUs(at, node, charge);
      if (readyUs <= this.#atUs) continue;
      this.#blockedUntilUs = readyUs;
      return at;
    }
    return undefined;
  }

  /** The node at or above `node` whose budget admits the units last, also if that time has passed. */
  #lastReady(node: EstimatedNode, charge: Charge): EstimatedNode {
    let last = node;
    let lastUs = 0;
    for (let at: EstimatedNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = readyAtUs(at, node, charge);
      if (readyUs <= lastUs) continue;
      last = at;
      lastUs = readyUs;
    }
    return last;
  }

  /** `blockedBy`: the limit that makes it late. */
  #decide(node: EstimatedNode, entry: EstimatedEntry, startUs: number, blockedBy?: Constraint): void {
    const { waiter, latestUs, charge } = entry;
    entry.startUs = startUs;
    if (entry.isAsked) entry.constraint = blockedBy ?? node.delayedBy(entry.joinedUs);
    node.head += 1;
    if (latestUs < Number.POSITIVE_INFINITY) this.#undecidedBounded -= 1;
    if (startUs <= latestUs) this.slackUs = Math.min(this.slackUs, latestUs - startUs);
    const isLate = startUs > latestUs && !this.#isDue(node, entry);
    if (!isLate) {
      node.lateGroup = undefined;
      this.hasDue ||= startUs > latestUs;
    }
    if (waiter === undefined) return;
    if (!this.#isQuestion) waiter.estimatedUs = startUs;
    if (!isLate) return;
    if (node.lateGroup === undefined || !isSameCharge(node.lateGroup.charge, charge)) node.lateGroup = { charge };
    const constraint = blockedBy ?? node.delayedBy(entry.joinedUs);
    this.#late.push({ waiter, startUs, constraint, group: node.lateGroup });
  }

  /** The budget of the node has too few units, or no slot, for the request that has the turn. */
  #park(node: EstimatedNode): void {
    node.isParked = true;
    node.untilUs = this.#blockedUntilUs;
    // Named now: once the request is charged, the windows give a later time.
    node.parkedLimit = node.budget?.constraint(this.#blockedCharge);
    if (node.untilUs === Number.POSITIVE_INFINITY) return;
    this.#timersSet += 1;
    this.#setTimer(node, node.untilUs, this.#timersSet);
  }

  #setTimer(node: EstimatedNode, untilUs: number, timerNumber: number): void {
    node.untilUs = untilUs;
    node.timerNumber = timerNumber;
    this.#parked.add(node);
  }

  #unpark(node: EstimatedNode): void {
    this.#parked.delete(node);
    node.isParked = false;
    if (node.isReady) this.#enqueue(node);
  }

  /** Timers fire in the order of their times; of equal times, in the order in which they were set. */
  #nextParked(): EstimatedNode | undefined {
    let next: EstimatedNode | undefined;
    for (const node of this.#parked) if (next === undefined || node.isBefore(next)) next = node;
    return next;
  }

  #enqueue(node: EstimatedNode): void {
    for (let at = node; at.above !== undefined && !at.isParked; at = at.above) at.above.children.add(at);
  }
}

/** When the budget of `at` admits a request of the queue of `node`, which is `at` or below it. */
function readyAtUs(at: EstimatedNode, node: EstimatedNode, charge: Charge): number {
  const isLeased = at !== node && node.budget?.holdsUnits(charge.units) === true;
  return at.budget?.readyUs(charge, isLeased) ?? 0;
}

function startOfEntry(node: EstimatedNode, { startUs, constraint, joinedUs }: EstimatedEntry): EstimatedStart {
  if (startUs !== undefined) return { startUs, constraint };
  return { startUs: Number.POSITIVE_INFINITY, constraint: node.delayedBy(joinedUs) };
}
