import type { LimitPolicies } from "../../policy/limits.ts";
import type { HostQueueStatus } from "../host-queue-status.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { Work } from "../work.ts";
import { type PlannedCall, plannedCalls, type ResolverYields } from "./call-plan.ts";
import { type RunEstimate, RunEstimator } from "./run-estimate.ts";

export interface EstimateOptions {
  readonly limits: LimitPolicies;
  readonly order: (work: Work) => readonly Resolver[];
  readonly yields: ResolverYields;
  /** See `RunOptions.maxBreakerWaitMs`. */
  readonly patienceMs: number;
}

interface QueuePlan {
  works: number;
  readonly calls: Map<string, PlannedCall>;
}

/**
 * Estimates a run before it starts, and the rest of it while it runs: the limits take a certain time for the requests that
 * are expected, and the service that takes longest decides.
 */
export class RunForecast {
  readonly #options: EstimateOptions;
  readonly #estimator: RunEstimator;
  /** What works of each first queue are expected to cost. */
  readonly #plans = new Map<string, QueuePlan>();

  constructor(options: EstimateOptions) {
    this.#options = options;
    this.#estimator = new RunEstimator(options.limits);
  }

  /** @param queue of the first step of the work */
  add(work: Work, queue: string): void {
    const calls = plannedCalls(work, this.#options.order(work), this.#options.yields);
    this.#estimator.add(work.key.slice(0, work.key.indexOf(":")), calls);
    const plan = this.#plans.get(queue) ?? { works: 0, calls: new Map<string, PlannedCall>() };
    this.#plans.set(queue, plan);
    plan.works += 1;
    for (const call of calls) {
      const key = `${call.host} ${call.role} ${call.isDispensable}`;
      const known = plan.calls.get(key);
      plan.calls.set(key, known === undefined ? call : { ...known, units: known.units + call.units });
    }
  }

  /** The complete run, for all works that were added. */
  get total(): RunEstimate {
    return this.#estimator.estimate(this.#options.patienceMs);
  }

  /** How long the works that wait in these queues take. */
  leftMs(queues: readonly HostQueueStatus[]): number {
    const { limits, patienceMs } = this.#options;
    const rest = new RunEstimator(limits);
    let blockedMs = 0;
    for (const { host, role, waiting, inFlightRequests, freeInMs } of queues) {
      const plan = this.#plans.get(`${host} ${role}`);
      const works = waiting + inFlightRequests;
      if (plan === undefined || plan.works === 0) rest.addCalls([{ ...callAt(host, role), units: works }]);
      else {
        const share = works / plan.works;
        rest.addCalls([...plan.calls.values()].map(call => ({ ...call, units: call.units * share })));
      }
      if (waiting > 0 && freeInMs <= patienceMs) blockedMs = Math.max(blockedMs, freeInMs);
    }
    return Math.max(rest.estimate(patienceMs).ms, blockedMs);
  }
}

function callAt(host: string, role: string): Omit<PlannedCall, "units"> {
  const known = role === "landing" || role === "artifact" ? role : "metadata";
  return { host, path: "/", role: known, isDispensable: known === "metadata" };
}
