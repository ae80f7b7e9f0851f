import type { Constraint } from "../errors.ts";
import type { Charge } from "./charge.ts";
import type { EstimatedBudget } from "./estimated-budget.ts";
import type { Waiter } from "./waiter.ts";

/** One request of an estimate: queued in reality, or only supposed. */
export interface EstimatedEntry {
  readonly charge: Charge;
  /** The latest start that its bound permits. */
  latestUs: number;
  /** Undefined for a request that is only supposed. */
  readonly waiter: Waiter | undefined;
  /** A request that is only supposed, and that must not delay others: it takes no capacity and no turn. */
  isProbe: boolean;
  /** When it joined its queue in the estimate. */
  readonly joinedUs: number;
  /** When it starts; for a request that is too late, a time after `latestUs`. Undefined until decided. */
  startUs: number | undefined;
  /** Whether the caller wants to know `constraint`. */
  isAsked: boolean;
  /** The limit that delays it; undefined until its start is decided. */
  constraint: Constraint | undefined;
}

export function entryOf(
  charge: Charge,
  latestUs: number,
  waiter: Waiter | undefined,
  joinedUs: number,
): EstimatedEntry {
  return {
    charge,
    latestUs,
    waiter,
    joinedUs,
    isProbe: false,
    startUs: undefined,
    isAsked: false,
    constraint: undefined,
  };
}

/** Late requests that follow each other in one queue and have the same charge: each would start at the same time. */
export interface LateGroup {
  readonly charge: Charge;
}

/** A `SchedulerNode` of an estimate. */
export class EstimatedNode {
  readonly above: EstimatedNode | undefined;
  readonly budget: EstimatedBudget | undefined;
  readonly queue: EstimatedEntry[] = [];
  /** Index of the first request of the queue that is not decided. */
  head = 0;
  readonly children = new Set<EstimatedNode>();
  skippedTurns = 0;
  isParked = false;
  untilUs = 0;
  /** As `SchedulerNode.timerNumber`. */
  timerNumber = 0;
  /** The limit that its last wait was for; the wait ends at `untilUs`. */
  parkedLimit: Constraint | undefined = undefined;
  /** Of the last request of the queue that was decided; undefined if that one is not late. */
  lateGroup: LateGroup | undefined = undefined;

  constructor(above: EstimatedNode | undefined, budget: EstimatedBudget | undefined) {
    this.above = above;
    this.budget = budget;
  }

  get isEmpty(): boolean {
    return this.queue.length === this.head;
  }

  get isReady(): boolean {
    return !this.isParked && (this.children.size > 0 || !this.isEmpty);
  }

  /**
   * The limit that delays the last request of the queue: of the waits of this node and of those above, the limit whose
   * wait ends last, after `sinceUs`. At a node above, another request may have the turn.
   */
  delayedBy(sinceUs: number): Constraint | undefined {
    let lastUs = sinceUs;
    let limit: Constraint | undefined;
    for (let at: EstimatedNode | undefined = this; at !== undefined; at = at.above) {
      if (at.untilUs <= lastUs) continue;
      lastUs = at.untilUs;
      limit = at.parkedLimit;
    }
    return limit;
  }

  isBefore(other: EstimatedNode): boolean {
    return this.untilUs < other.untilUs || (this.untilUs === other.untilUs && this.timerNumber < other.timerNumber);
  }
}
