import type { LimitPolicies } from "../../policy/limit-policies.ts";
import type { HostQueueStatus } from "../host-queue-status.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { Work } from "../work.ts";
import { shapeOf } from "../work-shape.ts";
import { type PlannedCall, plannedCalls, type ResolverYields } from "./call-plan.ts";
import { type RunEstimate, RunEstimator } from "./run-estimate.ts";

export interface EstimateOptions {
  readonly limits: LimitPolicies;
  readonly order: (work: Work) => readonly Resolver[];
  readonly yields: ResolverYields;
  /** See `RunOptions.maxBreakerWaitMs`. */
  readonly maxBreakerWaitMs: number;
}

/** Works that are expected to cost the same. */
interface WorkGroup {
  readonly kind: string;
  readonly queue: string;
  readonly calls: readonly PlannedCall[];
  works: number;
}

/** If there are so many groups, a work of a new shape counts in the last group of its queue. */
const GROUPS_MAX = 5000;

/**
 * Estimates how long a run takes, before it starts, and how much time is left, while it runs. For each service, the rate
 * limits give the time for the expected requests. The longest of these times is the estimate.
 */
export class ListEstimator {
  readonly #options: EstimateOptions;
  readonly #groups = new Map<string, WorkGroup>();
  readonly #lastOfQueue = new Map<string, WorkGroup>();

  constructor(options: EstimateOptions) {
    this.#options = options;
  }

  /** @param queue of the first step of the work; only `leftMs` needs it */
  add(work: Work, queue = ""): void {
    const shape = shapeOf(work);
    const known =
      this.#groups.get(shape) ?? (this.#groups.size >= GROUPS_MAX ? this.#lastOfQueue.get(queue) : undefined);
    if (known !== undefined) {
      known.works += 1;
      return;
    }
    const calls = plannedCalls(work, this.#options.order(work), this.#options.yields);
    const group = { kind: work.key.slice(0, work.key.indexOf(":")), queue, calls, works: 1 };
    this.#groups.set(shape, group);
    this.#lastOfQueue.set(queue, group);
  }

  /** The complete run, for all works that were added. */
  get total(): RunEstimate {
    const estimator = new RunEstimator(this.#options.limits);
    for (const { kind, calls, works } of this.#groups.values()) estimator.add(kind, works, calls);
    return estimator.estimate(this.#options.maxBreakerWaitMs);
  }

  /** How long the works that wait in these queues take. */
  leftMs(queues: readonly HostQueueStatus[]): number {
    const { limits, maxBreakerWaitMs } = this.#options;
    const rest = new RunEstimator(limits);
    const listed = new Map<string, number>();
    for (const { queue, works } of this.#groups.values()) listed.set(queue, (listed.get(queue) ?? 0) + works);
    const shares = new Map<string, number>();
    let blockedMs = 0;
    for (const { host, role, waiting, inFlightRequests, freeInMs } of queues) {
      const queue = `${host} ${role}`;
      const works = waiting + inFlightRequests;
      const all = listed.get(queue);
      if (all === undefined) rest.add("", works, [{ ...callAt(host, role), units: 1 }]);
      else shares.set(queue, works / all);
      if (waiting > 0 && freeInMs <= maxBreakerWaitMs) blockedMs = Math.max(blockedMs, freeInMs);
    }
    for (const { queue, calls, works } of this.#groups.values()) {
      const share = shares.get(queue);
      if (share !== undefined) rest.add("", works * share, calls);
    }
    return Math.max(rest.estimate(maxBreakerWaitMs).ms, blockedMs);
  }
}

function callAt(host: string, role: string): Omit<PlannedCall, "units"> {
  const known = role === "landing" || role === "artifact" ? role : "metadata";
  return { host, path: "/", role: known, isDispensable: known === "metadata" };
}
