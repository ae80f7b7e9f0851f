import { isOperatorReason } from "../../src/breaker/cooldowns.ts";
import { commonName } from "../../src/policy/partition-name.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/** A call that got no answer loses its place after its lease, which began when it was granted: before its jitter. */
const LEASE_US = 35_000_000;

/** The traffic of one role of a host in one process, since its last cooldown. */
interface Resumed {
  /** When its cooldown began. */
  readonly begunUs: number;
  /** An operator has ordered it, so that it is for the partitions of the host too. */
  readonly isOrdered: boolean;
  limit: number;
  answered: number;
  readonly unanswered: Set<WireRequest>;
  /** Connecting requests whose call has ended: aborted with it, or still needed by calls that were coalesced with it. */
  readonly unclear: Set<WireRequest>;
  /** Requests of partitions that may have been granted before the cooldown, and were sent after their jitter. */
  readonly unsure: Set<WireRequest>;
}

/** B12: after a cooldown a role sends `trial_calls` at a time, and twice as many each time that all were answered. */
export const resumesSlowly: LawMaker = {
  title: "traffic resumes slowly after a cooldown",
  make: (plan, occasion) => new ResumesSlowly(plan, occasion),
};

class ResumesSlowly implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #resumed = new Map<string, Resumed>();
  /** How long the machine was suspended so far, and when each request was sent. Leases do not age meanwhile. */
  #suspendedUs = 0;
  readonly #suspendedAtSend = new WeakMap<WireRequest, number>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "event" && fact.event.event_type === "breaker_cooldown_set")
      this.#begin(`${fact.process} ${fact.event.host}`, fact.atUs, isOperatorReason(fact.event.reason));
    else if (fact.kind === "fault" && fact.fault.kind === "operator" && fact.fault.openS === 0)
      this.#end(fact.fault.host);
    // A process that has not read the order yet may begin a cooldown in between.
    else if (
      fact.kind === "event" &&
      fact.event.event_type === "breaker_cooldown_ended" &&
      fact.event.by === "operator"
    )
      this.#end(commonName(fact.event.host), fact.process);
    else if (fact.kind === "fault" && fact.fault.kind === "suspend" && !fact.isOver)
      this.#suspendedUs += fact.fault.ms * 1000;
    else if (fact.kind === "dispatched") return this.#sent(fact.request, fact.atUs);
    else if (fact.kind === "written") this.#written(fact.request);
    else if (fact.kind === "head") this.#answered(fact.request, fact.status === 429 || fact.status >= 500);
    else if (fact.kind === "ended") this.#ended(fact.request, fact.how === "failed");
    else if (fact.kind === "done") this.#callEnded(fact.process, fact.call);
    return undefined;
  }

  #begin(hostKey: string, begunUs: number, isOrdered: boolean): void {
    const { trialCalls } = this.#plan.breakers;
    for (const role of ["metadata", "landing", "artifact"])
      this.#resumed.set(`${hostKey} ${role}`, {
        ...{ begunUs, isOrdered, limit: trialCalls, answered: 0 },
        ...{ unanswered: new Set(), unclear: new Set(), unsure: new Set() },
      });
  }

  /** An operator closes the circuits of a host: all traffic flows again. */
  #end(host: string, process?: number): void {
    for (const key of this.#resumed.keys()) {
      const [ofProcess, unit = ""] = key.split(" ");
      if (commonName(unit) === host && (process === undefined || ofProcess === `${process}`)) this.#resumed.delete(key);
    }
  }

  #sent(request: WireRequest, atUs: number): string | undefined {
    const leaseUs = LEASE_US - this.#plan.breakers.jitterMs * 1000 - 1000;
    const { id, host, role } = request;
    this.#suspendedAtSend.set(request, this.#suspendedUs);
    let message: string | undefined;
    for (const { unanswered, unsure, limit, begunUs } of this.#of(request)) {
      if (isPartition(request) && atUs - begunUs <= this.#plan.breakers.jitterMs * 1000 + 1000) {
        unsure.add(request);
        continue;
      }
      for (const one of unanswered) if (this.#ageUs(one, atUs) >= leaseUs) unanswered.delete(one);
      unanswered.add(request);
      if (unanswered.size >= limit) this.#occasion();
      if (unanswered.size > limit)
        message = `request ${id} is number ${unanswered.size} without an answer at ${host} (${role}) after a cooldown; limit ${limit}`;
    }
    return message;
  }

  #ageUs(request: WireRequest, atUs: number): number {
    const suspendedUs = this.#suspendedUs - (this.#suspendedAtSend.get(request) ?? 0);
    return atUs - request.dispatchedUs - suspendedUs;
  }

  #answered(request: WireRequest, isFailure: boolean): void {
    for (const resumed of this.#of(request)) {
      if (!resumed.unanswered.delete(request) && !resumed.unsure.delete(request)) continue;
      if (isFailure) this.#fail(resumed);
      else {
        resumed.answered += 1;
        if (resumed.answered < resumed.limit) continue;
        resumed.limit *= 2;
        resumed.answered = 0;
      }
    }
  }

  /** After an abort the hub may go on with the old limit or with a lower one. */
  #ended(request: WireRequest, isFailure: boolean): void {
    for (const resumed of this.#of(request)) if (resumed.unanswered.delete(request) && isFailure) this.#fail(resumed);
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
    for (const resumed of this.#of(request)) if (resumed.unclear.delete(request)) resumed.unanswered.add(request);
  }

  /** Of the circuit that it belongs to, and of the host after an order: partitions resume with it. */
  #of({ process, breakerUnit, role }: WireRequest): readonly Resumed[] {
    const own = this.#resumed.get(`${process} ${breakerUnit} ${role}`);
    const common = this.#resumed.get(`${process} ${commonName(breakerUnit)} ${role}`);
    return [...new Set([own, common?.isOrdered ? common : undefined])].filter(resumed => resumed !== undefined);
  }
}

function isPartition({ breakerUnit }: WireRequest): boolean {
  return commonName(breakerUnit) !== breakerUnit;
}
