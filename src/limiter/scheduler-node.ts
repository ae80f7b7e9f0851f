import type { Constraint } from "../errors.ts";
import type { Timer } from "../time/time.ts";
import type { Budget } from "./budget.ts";
import { ChildTurns } from "./child-turns.ts";
import type { QueueEstimate } from "./queue-estimate.ts";
import { RoleBudget } from "./role-budget.ts";
import { WaitQueue } from "./wait-queue.ts";
import type { Waiter } from "./waiter.ts";

/** The last wait of a node for one kind of limit. */
export interface Parking {
  readonly limit: Constraint;
  /** When it ended; Infinity while it lasts. */
  untilUs: number;
}

/**
 * One node in the tree of waiting requests: a role budget with its queue, or a shared budget or host with the children
 * that take turns. A node exists only while requests wait at or below it.
 */
export class SchedulerNode {
  /** Undefined for a host without a `total`: the node only lets its roles take turns. */
  readonly budget: Budget | undefined;
  readonly key: Budget | string;
  readonly above: SchedulerNode | undefined;
  /** Only for role budgets. */
  readonly queue: WaitQueue | undefined;
  /** Children that may have a ready request. */
  readonly children = new ChildTurns<SchedulerNode>();
  /** All children, also those that wait for their own budgets. */
  readonly below = new Set<SchedulerNode>();
  /** Requests that wait at or below this node. */
  waiting = 0;
  /** Those of them that have a bound. */
  bounded = 0;
  /** Turns that this node skips, because the weight of its last request was more than 1. */
  skippedTurns = 0;
  /** It had the turn when the store was asked, and gets it again after the reply. */
  keepsTurn = false;
  /**
   * Why this node is not served now. `time`: until its timer fires. `slot`: until an event whose time is unknown, such as a
   * free slot, a reply of the store, or the response to the request in flight.
   */
  parkedFor: "slot" | "time" | undefined = undefined;
  /** Children that wait for a reply of the store only. */
  askingBelow = 0;
  #isStoreAsked = false;
  /** The request that had the turn when it was parked. */
  parkedBy: Waiter | undefined = undefined;
  /** When it was last parked as `slot`. */
  #slotlessSinceUs = 0;
  /** How long it was parked as `slot` before that, in total. */
  #slotlessUs = 0;
  /** The last waits for a slot and for time: they say what delayed the requests of this node. */
  slotParking: Parking | undefined = undefined;
  timeParking: Parking | undefined = undefined;
  /** Only of a node directly below the root: the estimate of all requests below it, while it is valid. */
  estimate: QueueEstimate | undefined = undefined;
  /** Only of such a node: how much later than estimated its requests may start and still keep their bounds. */
  slackUs = Number.POSITIVE_INFINITY;
  /** `hasDue` of the last estimate that was compared with the bounds of its requests. */
  hasDue = false;
  /** Fires when the slack is used up. */
  slackTimer: Timer | undefined = undefined;
  timer: Timer | undefined = undefined;
  /** When the timer fires. */
  untilUs = 0;
  /** The number of the timer, in the order in which timers were set: of equal times the lower number fires first. */
  timerNumber = 0;

  constructor(key: Budget | string, above: SchedulerNode | undefined) {
    this.key = key;
    this.budget = typeof key === "string" ? undefined : key;
    this.above = above;
    this.queue = key instanceof RoleBudget ? new WaitQueue() : undefined;
  }

  /**
   * @param limit undefined if no limit has delayed the request yet: the node waits for a reply of the store, or for the
   *   response to the request in flight
   */
  parkForSlot(waiter: Waiter, nowUs: number, limit: Constraint | undefined): void {
    this.parkedFor = "slot";
    this.parkedBy = waiter;
    this.#slotlessSinceUs = nowUs;
    if (limit?.kind === "concurrency") this.slotParking = { limit, untilUs: Number.POSITIVE_INFINITY };
    else if (limit !== undefined) this.timeParking = { limit, untilUs: Number.POSITIVE_INFINITY };
  }

  /** The store is asked for what the request lacks: its reply unparks the node. */
  parkForStore(waiter: Waiter, nowUs: number): void {
    this.parkForSlot(waiter, nowUs, undefined);
    this.#isStoreAsked = true;
    if (this.above !== undefined) this.above.askingBelow += 1;
  }

  parkForTime(waiter: Waiter, limit: Constraint): void {
    this.parkedFor = "time";
    this.parkedBy = waiter;
    this.timeParking = { limit, untilUs: Number.POSITIVE_INFINITY };
  }

  unpark(nowUs: number): void {
    if (this.parkedFor === "slot") this.#slotlessUs += nowUs - this.#slotlessSinceUs;
    this.parkedFor = undefined;
    this.parkedBy = undefined;
    if (this.#isStoreAsked && this.above !== undefined) this.above.askingBelow -= 1;
    this.#isStoreAsked = false;
    endParking(this.slotParking, nowUs);
    endParking(this.timeParking, nowUs);
    this.timer?.cancel();
    this.timer = undefined;
  }

  /** For how long this node and those above it were parked as `slot`, in total. */
  slotWaitUs(nowUs: number): number {
    const now = this.parkedFor === "slot" ? nowUs - this.#slotlessSinceUs : 0;
    return this.#slotlessUs + now + (this.above?.slotWaitUs(nowUs) ?? 0);
  }

  /** Whether the children share rates, and not slots alone. */
  get sharesRates(): boolean {
    return this.budget !== undefined && this.budget.windows.length > 0;
  }

  /** It keeps the turn although it is parked: no slot is missing here, and it waits for the store or for a response. */
  get isAsking(): boolean {
    return this.keepsTurn && this.parkedFor === "slot" && this.budget?.hasSlot !== false;
  }

  /** A request at or below this node may be ready. */
  get isReady(): boolean {
    return this.parkedFor === undefined && (this.queue === undefined ? this.children.size > 0 : this.queue.length > 0);
  }

  /** Requests wait for this budget itself, or for a turn at it. */
  get isBusy(): boolean {
    return this.parkedFor !== undefined || this.children.size > 0;
  }
}

/**
 * The key of the node above; undefined if that is the root. A role budget without a budget above it is below a node that
 * has the name of its host, so that the roles of one host share one turn under the global ceiling.
 */
export function keyAbove(key: Budget | string): Budget | string | undefined {
  if (typeof key === "string") return undefined;
  return key.above ?? (key instanceof RoleBudget ? key.name : undefined);
}

/** The node directly below the root that requests of this budget pass; undefined if no request waits there. */
export function topOf(nodes: ReadonlyMap<Budget | string, SchedulerNode>, budget: Budget): SchedulerNode | undefined {
  let top: Budget | string = budget;
  for (let above = keyAbove(top); above !== undefined; above = keyAbove(top)) top = above;
  return nodes.get(top);
}

function endParking(parking: Parking | undefined, nowUs: number): void {
  if (parking !== undefined && parking.untilUs > nowUs) parking.untilUs = nowUs;
}
