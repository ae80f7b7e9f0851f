import type { SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";

/** Reads of the clock in one turn of the event loop. Each costs up to `computeUs` of simulated time. */
const CLOCK_READS = 100;

/** One law of docs/concepts.md, checked on every fact of a simulation. */
export interface Law {
  /** A message when the fact violates the law. `touched`: the requests that changed in the same turn. */
  check(fact: SimFact, touched: ReadonlySet<WireRequest>): string | undefined;
}

export interface LawMaker {
  /** Cited in docs/guarantees.md and in traces. */
  readonly title: string;
  /** @param occasion called each time the law applies: had the hub acted otherwise, the law would have been violated */
  readonly make: (plan: Plan, occasion: () => void) => Law;
}

export function ms(us: number): string {
  return `${Math.round(us) / 1000} ms`;
}

/** How long one turn of the event loop of a process takes at most: reads of the clock cost time. */
export function turnUs({ processes }: Plan, process: number): number {
  return CLOCK_READS * (processes[process]?.computeUs ?? 0);
}

/** How long a call may wait: its own bound, and its deadline. The policy's `maxDelayMs` only if it has neither. */
export function boundOf({ maxWaitMs, deadlineMs }: CallPlan, maxDelayMs: number): number {
  return Math.min(maxWaitMs ?? deadlineMs ?? maxDelayMs, deadlineMs ?? Number.POSITIVE_INFINITY);
}
