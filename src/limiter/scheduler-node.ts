import type { Timer } from "../time/time.ts";
import type { Budget } from "./budget.ts";
import { RoleBudget } from "./role-budget.ts";
import { WaitQueue } from "./wait-queue.ts";

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
  /** Children that may have a ready request, in the order of their turns. */
  readonly children = new Set<SchedulerNode>();
  /** Requests that wait at or below this node. */
  waiting = 0;
  /** Turns that this node skips, because the weight of its last request was more than 1. */
  skippedTurns = 0;
  /** What the budget of this node waits for; the node is not served until then. */
  parkedFor: "slot" | "time" | undefined = undefined;
  timer: Timer | undefined = undefined;

  constructor(key: Budget | string, above: SchedulerNode | undefined) {
    this.key = key;
    this.budget = typeof key === "string" ? undefined : key;
    this.above = above;
    this.queue = key instanceof RoleBudget ? new WaitQueue() : undefined;
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
