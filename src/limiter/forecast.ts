import type { Constraint } from "../errors.ts";
import type { Budget } from "./budget.ts";
import type { Charge } from "./charge.ts";
import { ForecastBudget } from "./forecast-budget.ts";
import type { RoleBudget } from "./role-budget.ts";
import { keyAbove, type SchedulerNode } from "./scheduler-node.ts";
import type { Waiter } from "./waiter.ts";

/** One request of a forecast: queued in reality, or only supposed. */
interface ForecastEntry {
  readonly charge: Charge;
  /** The latest start that its bound permits. */
  latestUs: number;
  /** Undefined for a request that is only supposed. */
  readonly waiter: Waiter | undefined;
  /** When it starts; for a request that is too late, a time after `latestUs`. Undefined until decided. */
  startUs: number | undefined;
  /** Whether `constraint` is asked for. */
  isAsked: boolean;
  /** The limit that delays it. Found when it is decided: once it is charged, the windows are further on. */
  constraint: Constraint | undefined;
}

/** When a request starts, and which limit delays it. */
export interface ForecastStart {
  /** Infinity if a slot is missing, whose release is unknown. */
  readonly startUs: number;
  readonly constraint: Constraint | undefined;
}

export interface LateWaiter extends ForecastStart {
  readonly waiter: Waiter;
}

/**
 * When the queued requests below one budget start if nothing else arrives: the rules of the `Scheduler`, run ahead on
 * numbers. A slot that is taken stays taken, because its release is unknown; a request that starts in the forecast takes
 * none. Units that are granted but not yet written count as written now.
 *
 * A request that cannot start within its bound is left out from then on, as if it were refused now.
 */
export class Forecast {
  readonly #nodes = new Map<Budget | string, ForecastNode>();
  readonly #root = new ForecastNode(undefined, undefined);
  /** Nodes that wait for time, in no order: at most one for each role budget with a queue, and those above. */
  readonly #parked = new Set<ForecastNode>();
  readonly #late: LateWaiter[] = [];
  readonly #slotsIgnored = new Set<Budget>();
  /** When it was made. */
  readonly madeUs: number;
  /** The least time by which a request that was decided starts before its bound ends. */
  slackUs = Number.POSITIVE_INFINITY;
  /** A unit that is granted and not written yet counts as written now, so that starts move as long as it is not. */
  hasPending = false;
  /** The instant up to which the forecast has run. */
  #atUs: number;
  /** Requests with a bound that are not decided yet. */
  #bounded = 0;
  #queues = 0;
  #blockedUntilUs = 0;
  #parkings = 0;

  /**
   * `top` is the node below the scheduler's root; undefined if nothing waits there. Slots of the budgets that requests of
   * `slotsIgnored` pass count as free.
   */
  constructor(top: SchedulerNode | undefined, nowUs: number, slotsIgnored?: RoleBudget) {
    this.madeUs = nowUs;
    this.#atUs = nowUs;
    for (let at: Budget | undefined = slotsIgnored; at; at = at.above) this.#slotsIgnored.add(at);
    if (top !== undefined) this.#copy(top, this.#root);
  }

  /** Whether all its requests are in one queue. Then a request that joins it later delays none of them. */
  get isOneQueue(): boolean {
    return this.#queues === 1;
  }

  /** The requests that cannot start within their bounds, in the order in which that shows; each is returned once. */
  takeLate(): readonly LateWaiter[] {
    // The forecast of one queue is kept. It is made to the end at once: later the log has dropped stamps that it needs.
    this.#run(() => this.#bounded === 0 && !this.isOneQueue);
    return this.#late.splice(0);
  }

  /** A request has joined the queue of its role budget, as the last one. */
  append(waiter: Waiter, nowUs: number): void {
    // The requests before it start before the time moves on.
    this.#run(() => false);
    this.#atUs = Math.max(this.#atUs, nowUs);
    this.#join(waiter.roleBudget, this.#entryOf(waiter));
  }

  /** When a new request would start that joins the queue of its role budget last. Only for one such request. */
  startOf(roleBudget: RoleBudget, charge: Charge): ForecastStart {
    const entry = entryOf(charge, Number.POSITIVE_INFINITY, undefined);
    const node = this.#join(roleBudget, entry);
    return this.#startOfEntry(node, entry);
  }

  /**
   * The same for one queue, any number of times. Undefined if a request of the queue waits for a slot, or if there are
   * other queues.
   */
  peek(roleBudget: RoleBudget, charge: Charge, nowUs: number): ForecastStart | undefined {
    const node = this.#nodes.get(roleBudget);
    if (!this.isOneQueue || node === undefined) return undefined;
    this.#run(() => node.isEmpty);
    if (!node.isEmpty) return undefined;
    let startUs = Math.max(this.#atUs, nowUs);
    let { blockedBy } = node;
    for (let at: ForecastNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = at.budget?.readyUs(charge) ?? 0;
      if (readyUs <= startUs) continue;
      startUs = readyUs;
      blockedBy = at.budget;
    }
    return { startUs, constraint: blockedBy?.constraint(charge) };
  }

  /** When a queued request starts, if no bound and no missing slot of its own budgets keeps it from starting. */
  startOfQueued(waiter: Waiter): ForecastStart {
    const node = this.#nodeOf(waiter.roleBudget);
    const entry = node.queue.find(one => one.waiter === waiter);
    if (entry === undefined) return { startUs: Number.POSITIVE_INFINITY, constraint: undefined };
    entry.latestUs = Number.POSITIVE_INFINITY;
    return this.#startOfEntry(node, entry);
  }

  #startOfEntry(node: ForecastNode, entry: ForecastEntry): ForecastStart {
    entry.isAsked = true;
    this.#run(() => entry.startUs !== undefined);
    if (entry.startUs !== undefined) return { startUs: entry.startUs, constraint: entry.constraint };
    return { startUs: Number.POSITIVE_INFINITY, constraint: node.blockedBy?.constraint(entry.charge) };
  }

  #copy(node: SchedulerNode, above: ForecastNode): ForecastNode {
    const copy = new ForecastNode(above, node.budget && this.#budgetOf(node.budget));
    this.#nodes.set(node.key, copy);
    copy.skippedTurns = node.skippedTurns;
    if (node.queue !== undefined) this.#queues += 1;
    for (const waiter of node.queue?.all() ?? []) this.#push(copy, this.#entryOf(waiter));
    // Children that are ready have a turn, in their order; the others wait for their own budgets.
    for (const child of node.children) copy.children.add(this.#copy(child, copy));
    for (const child of node.below) if (!node.children.has(child)) this.#copy(child, copy);
    if (node.parkedFor === undefined) {
      if (copy.isReady) above.children.add(copy);
      return copy;
    }
    copy.isParked = true;
    if (node.parkedFor === "time") {
      this.#parkings = Math.max(this.#parkings, node.parking);
      this.#setTimer(copy, node.untilUs, node.parking);
    } else if (copy.budget?.hasSlot !== false) {
      // It waits for a reply of the store, or for a slot that is ignored: in the forecast it has both now.
      this.#setTimer(copy, this.madeUs, 0);
    }
    return copy;
  }

  #join(roleBudget: RoleBudget, entry: ForecastEntry): ForecastNode {
    const node = this.#nodeOf(roleBudget);
    this.#push(node, entry);
    if (node.queue.length - node.head === 1) this.#enqueue(node);
    return node;
  }

  #push(node: ForecastNode, entry: ForecastEntry): void {
    node.queue.push(entry);
    if (entry.latestUs < Number.POSITIVE_INFINITY) this.#bounded += 1;
  }

  #entryOf(waiter: Waiter): ForecastEntry {
    return entryOf(waiter.charge, waiter.latestUs(this.madeUs), waiter);
  }

  #budgetOf(budget: Budget): ForecastBudget {
    if (budget.hasPending) this.hasPending = true;
    return new ForecastBudget(budget, this.madeUs, this.#slotsIgnored.has(budget));
  }

  #nodeOf(key: Budget | string): ForecastNode {
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const above = keyAbove(key);
    const budget = typeof key === "string" ? undefined : this.#budgetOf(key);
    const node = new ForecastNode(above === undefined ? this.#root : this.#nodeOf(above), budget);
    this.#nodes.set(key, node);
    return node;
  }

  #run(isEnough: () => boolean): void {
    while (!isEnough()) {
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
  #serve(node: ForecastNode): "served" | "idle" | ForecastNode {
    if (!node.isEmpty) return this.#serveQueue(node);
    for (const child of node.children) {
      if (child.skippedTurns > 0 && node.children.size > 1) {
        child.skippedTurns -= 1;
        node.children.delete(child);
        node.children.add(child);
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
      if (outcome === node) this.#park(node, this.#blockedUntilUs);
      return outcome;
    }
    return "idle";
  }

  #serveQueue(node: ForecastNode): "served" | "idle" | ForecastNode {
    for (;;) {
      const entry = node.queue[node.head];
      if (entry === undefined) return "idle";
      const { charge } = entry;
      const blocking = this.#blocking(node, charge);
      const readyUs = blocking === undefined ? this.#atUs : this.#blockedUntilUs;
      if (readyUs < Number.POSITIVE_INFINITY && readyUs > entry.latestUs && !this.#isDue(node, entry)) {
        this.#decide(node, entry, readyUs);
        continue;
      }
      if (blocking !== undefined) {
        if (blocking === node) this.#park(node, readyUs);
        return blocking;
      }
      this.#decide(node, entry, readyUs);
      for (let at: ForecastNode | undefined = node; at !== undefined; at = at.above) at.budget?.charge(charge, readyUs);
      for (let at: ForecastNode = node; at.above !== undefined && at.above !== this.#root; at = at.above)
        at.skippedTurns = Math.max(0, charge.units - 1);
      return "served";
    }
  }

  /**
   * Its budgets had capacity in time: it waits for a slot, for a reply of the store, or because this process was too late
   * to use it. The rates do not make it late.
   */
  #isDue(node: ForecastNode, { charge, latestUs, waiter }: ForecastEntry): boolean {
    if (waiter === undefined || this.#atUs > this.madeUs) return false;
    for (let at: ForecastNode | undefined = node; at !== undefined; at = at.above)
      if ((at.budget?.readyUs(charge) ?? 0) > latestUs) return false;
    return true;
  }

  /** The lowest node whose budget does not admit the units now; `#blockedUntilUs` is then its time. */
  #blocking(node: ForecastNode, charge: Charge): ForecastNode | undefined {
    for (let at: ForecastNode | undefined = node; at !== undefined; at = at.above) {
      const readyUs = at.budget?.readyUs(charge) ?? 0;
      if (readyUs <= this.#atUs) continue;
      this.#blockedUntilUs = readyUs;
      node.blockedBy = at.budget;
      return at;
    }
    return undefined;
  }

  #decide(node: ForecastNode, entry: ForecastEntry, startUs: number): void {
    const { waiter, latestUs, charge } = entry;
    entry.startUs = startUs;
    if (entry.isAsked) entry.constraint = node.blockedBy?.constraint(charge);
    node.head += 1;
    if (latestUs < Number.POSITIVE_INFINITY) this.#bounded -= 1;
    if (startUs <= latestUs) this.slackUs = Math.min(this.slackUs, latestUs - startUs);
    if (waiter === undefined) return;
    waiter.estimatedUs = startUs;
    if (startUs > latestUs && !this.#isDue(node, entry))
      this.#late.push({ waiter, startUs, constraint: node.blockedBy?.constraint(charge) });
  }

  #park(node: ForecastNode, untilUs: number): void {
    node.isParked = true;
    if (untilUs === Number.POSITIVE_INFINITY) return;
    this.#parkings += 1;
    this.#setTimer(node, untilUs, this.#parkings);
  }

  #setTimer(node: ForecastNode, untilUs: number, parking: number): void {
    node.untilUs = untilUs;
    node.parking = parking;
    this.#parked.add(node);
  }

  #unpark(node: ForecastNode): void {
    this.#parked.delete(node);
    node.isParked = false;
    if (node.isReady) this.#enqueue(node);
  }

  /** Timers fire in the order of their times; of equal times, in the order in which they were set. */
  #nextParked(): ForecastNode | undefined {
    let next: ForecastNode | undefined;
    for (const node of this.#parked) if (next === undefined || node.isBefore(next)) next = node;
    return next;
  }

  #enqueue(node: ForecastNode): void {
    for (let at = node; at.above !== undefined && !at.isParked; at = at.above) at.above.children.add(at);
  }
}

function entryOf(charge: Charge, latestUs: number, waiter: Waiter | undefined): ForecastEntry {
  return { charge, latestUs, waiter, startUs: undefined, isAsked: false, constraint: undefined };
}

class ForecastNode {
  readonly above: ForecastNode | undefined;
  readonly budget: ForecastBudget | undefined;
  readonly queue: ForecastEntry[] = [];
  /** Index of the first request of the queue that is not decided. */
  head = 0;
  readonly children = new Set<ForecastNode>();
  skippedTurns = 0;
  isParked = false;
  untilUs = 0;
  parking = 0;
  /** The budget that delayed the first request of the queue last. */
  blockedBy: ForecastBudget | undefined = undefined;

  constructor(above: ForecastNode | undefined, budget: ForecastBudget | undefined) {
    this.above = above;
    this.budget = budget;
  }

  get isEmpty(): boolean {
    return this.queue.length === this.head;
  }

  get isReady(): boolean {
    return !this.isParked && (this.children.size > 0 || !this.isEmpty);
  }

  isBefore(other: ForecastNode): boolean {
    return this.untilUs < other.untilUs || (this.untilUs === other.untilUs && this.parking < other.parking);
  }
}
