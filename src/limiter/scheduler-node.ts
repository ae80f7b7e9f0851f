import type { Timer } from "../time/time.ts";
import { type Budget, RoleBudget } from "./budget.ts";
import { WaitQueue } from "./wait-queue.ts";

/**
 * One place in the tree of those who wait: a lane with its line, or a budget (or a host) with the children whose
 * turn it may be. Places exist only while somebody waits beneath them.
 */
export class SchedulerNode {
  /** Undefined for a host that has no budget of its own: it is only there to take turns. */
  readonly budget: Budget | undefined;
  readonly key: Budget | string;
  readonly above: SchedulerNode | undefined;
  /** Lanes only. */
  readonly queue: WaitQueue | undefined;
  /** Children that may be able to go, in the order of their turns. */
  readonly children = new Set<SchedulerNode>();
  /** How many wait beneath. */
  waiting = 0;
  /** Turns this place lets pass, because its last request weighed more than one. */
  skippedTurns = 0;
  /** What this place's own budget lacks; it is left alone until then. */
  parkedFor: "slot" | "time" | undefined = undefined;
  timer: Timer | undefined = undefined;

  constructor(key: Budget | string, above: SchedulerNode | undefined) {
    this.key = key;
    this.budget = typeof key === "string" ? undefined : key;
    this.above = above;
    this.queue = key instanceof RoleBudget ? new WaitQueue() : undefined;
  }

  /** Somebody beneath may be able to go. */
  get isReady(): boolean {
    return this.parkedFor === undefined && (this.queue === undefined ? this.children.size > 0 : this.queue.length > 0);
  }

  /** Somebody waits for this budget itself, or for a turn at it. */
  get isBusy(): boolean {
    return this.parkedFor !== undefined || this.children.size > 0;
  }
}
