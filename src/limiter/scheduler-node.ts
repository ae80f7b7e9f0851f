import type { Timer } from "../time/time.ts";
import { type Budget, Lane } from "./budget.ts";
import { WaitingLine } from "./wait-queue.ts";

/**
 * One place in the tree of those who wait: a lane with its line, or a budget (or a host) with the children whose
 * turn it may be. Places exist only while somebody waits beneath them.
 */
export class Place {
  /** Undefined for a host that has no budget of its own: it is only there to take turns. */
  readonly budget: Budget | undefined;
  readonly key: Budget | string;
  readonly above: Place | undefined;
  /** Lanes only. */
  readonly line: WaitingLine | undefined;
  /** Children that may be able to go, in the order of their turns. */
  readonly children = new Set<Place>();
  /** How many wait beneath. */
  waiting = 0;
  /** Turns this place lets pass, because its last request weighed more than one. */
  debt = 0;
  /** What this place's own budget lacks; it is left alone until then. */
  parkedFor: "slot" | "time" | undefined = undefined;
  timer: Timer | undefined = undefined;

  constructor(key: Budget | string, above: Place | undefined) {
    this.key = key;
    this.budget = typeof key === "string" ? undefined : key;
    this.above = above;
    this.line = key instanceof Lane ? new WaitingLine() : undefined;
  }

  /** Somebody beneath may be able to go. */
  get isReady(): boolean {
    return this.parkedFor === undefined && (this.line === undefined ? this.children.size > 0 : this.line.length > 0);
  }

  /** Somebody waits for this budget itself, or for a turn at it. */
  get isBusy(): boolean {
    return this.parkedFor !== undefined || this.children.size > 0;
  }
}
