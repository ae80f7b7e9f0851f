import { commonName } from "../../src/policy/partition-name.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/** A call that got no answer loses its place after its lease, which began when it was granted: before its jitter. */
const LEASE_US = 35_000_000;

/** The traffic of one role of a host in one process, since its last cooldown. */
interface Resumed {
  limit: number;
  answered: number;
  readonly unanswered: Set<WireRequest>;
  /** Connecting requests whose call has ended: aborted with it, or still needed by calls that were coalesced with it. */
  readonly unclear: Set<WireRequest>;
}

/** B12: after a cooldown a role sends `trial_calls` at a time, and twice as many each time that all were answered. */
export const resumesSlowly: LawMaker = {
  title: "traffic resumes slowly after a cooldown",
  make: plan => new ResumesSlowly(plan),
};

class ResumesSlowly implements Law {
  readonly #plan: Plan;
  readonly #resumed = new Map<string, Resumed>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "event" && fact.event.event_type === "breaker_cooldown_set")
      this.#begin(`${fact.process} ${fact.event.host}`);
    else if (fact.kind === "fault" && fact.fault.kind === "operator" && fact.fault.openS === 0)
      this.#end(fact.fault.host);
    else if (fact.kind === "dispatched") return this.#sent(fact.request, fact.atUs);
    else if (fact.kind === "written") this.#written(fact.request);
    else if (fact.kind === "head") this.#answered(fact.request, fact.status === 429 || fact.status >= 500);
    else if (fact.kind === "ended") this.#ended(fact.request, fact.how === "failed");
    else if (fact.kind === "done") this.#callEnded(fact.process, fact.call);
    return undefined;
  }

  #begin(hostKey: string): void {
    const { trialCalls } = this.#plan.breakers;
    for (const role of ["metadata", "landing", "artifact"])
      this.#resumed.set(`${hostKey} ${role}`, {
        ...{ limit: trialCalls, answered: 0, unanswered: new Set(), unclear: new Set() },
      });
  }

  /** An operator closes the circuits of a host: all traffic flows again. */
  #end(host: string): void {
    for (const key of this.#resumed.keys()) if (commonName(key.split(" ")[1] ?? "") === host) this.#resumed.delete(key);
  }

  #sent(request: WireRequest, atUs: number): string | undefined {
    const resumed = this.#of(request);
    if (resumed === undefined) return undefined;
    const { unanswered, limit } = resumed;
    const leaseUs = LEASE_US - this.#plan.breakers.jitterMs * 1000 - 1000;
    for (const one of unanswered) if (atUs - one.dispatchedUs >= leaseUs) unanswered.delete(one);
    unanswered.add(request);
    if (unanswered.size <= limit) return undefined;
    const { id, host, role } = request;
    return `request ${id} is number ${unanswered.size} without an answer at ${host} (${role}) after a cooldown; limit ${limit}`;
  }

  #answered(request: WireRequest, isFailure: boolean): void {
    const resumed = this.#of(request);
    if (resumed?.unanswered.delete(request) !== true) return;
    if (isFailure) this.#fail(resumed);
    else {
      resumed.answered += 1;
      if (resumed.answered < resumed.limit) return;
      resumed.limit *= 2;
      resumed.answered = 0;
    }
  }

  /** After an abort the hub may go on with the old limit or with a lower one. */
  #ended(request: WireRequest, isFailure: boolean): void {
    const resumed = this.#of(request);
    if (resumed?.unanswered.delete(request) === true && isFailure) this.#fail(resumed);
  }

  #fail(resumed: Resumed): void {
    resumed.limit = this.#plan.breakers.trialCalls;
    resumed.answered = 0;
  }

  /** A request that was aborted while connecting emits no `ended` fact at that moment. */
  #callEnded(process: number, call: WireRequest["call"]): void {
    for (const { unanswered, unclear } of this.#resumed.values())
      for (const request of unanswered) {
        if (request.call !== call || request.process !== process || request.writtenUs !== undefined) continue;
        unanswered.delete(request);
        unclear.add(request);
      }
  }

  /** The request was not aborted: another call needs its answer. */
  #written(request: WireRequest): void {
    const resumed = this.#of(request);
    if (resumed?.unclear.delete(request)) resumed.unanswered.add(request);
  }

  #of({ process, breakerUnit, role }: WireRequest): Resumed | undefined {
    return this.#resumed.get(`${process} ${breakerUnit} ${role}`);
  }
}
