import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import { type Law, type LawMaker, ms } from "./law.ts";
import { hostOf, JITTER_US, logOf, scopesOf } from "./scopes.ts";
import type { StampLog } from "./stamp-log.ts";

/** Units that a process had leased when its store lost its data may be sent for this long. */
const LEASE_US = 1_000_000;

/**
 * L1 for the requests that one process writes, with the guard, under the policy at the time of dispatch. Holds under
 * all faults of stores, clocks and event loops.
 */
export const anyWindowOfProcess: LawMaker = {
  title: "any window, at each process",
  make: plan => new AnyWindowOfProcess(plan),
};

class AnyWindowOfProcess implements Law {
  readonly #plan: Plan;
  readonly #logs = new Map<string, StampLog>();
  readonly #factors = new Map<number, number>();
  readonly #factorOf = new WeakMap<WireRequest, number>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "reloaded") {
      const { process, factor, isDone } = fact;
      this.#factors.set(process, isDone ? factor : Math.max(factor, this.#factors.get(process) ?? 1));
    }
    if (fact.kind === "dispatched") this.#factorOf.set(fact.request, this.#factors.get(fact.request.process) ?? 1);
    if (fact.kind !== "written" || fact.request.units === 0) return undefined;
    const { request, atUs } = fact;
    const host = hostOf(this.#plan, request);
    const factor = this.#factorOf.get(request) ?? 1;
    for (const { name, rate } of scopesOf(host, request)) {
      const log = logOf(this.#logs, `${request.process} ${host.name} ${name}`);
      log.add(atUs, request.units);
      const { limit, windowMs } = scaled(rate, factor);
      const spanUs = (windowMs + host.guardMs) * 1000;
      const count = log.within(spanUs, atUs);
      if (count > limit)
        return `process ${request.process} wrote ${count} units to ${host.name} (${name}) within ${ms(spanUs)}; limit ${limit}`;
    }
    return undefined;
  }
}

/**
 * L1 for the requests that arrive at a server from all processes, by the server's clock. Holds while the network jitter
 * is below the guard and the store keeps its data. Requests sent while a process has no store are checked by `share`.
 * After a loss of data the count starts again, and requests that were already leased are not checked.
 */
export const anyWindowAtServer: LawMaker = {
  title: "any window, at the server",
  make: plan => new AnyWindowAtServer(plan),
};

class AnyWindowAtServer implements Law {
  readonly #plan: Plan;
  readonly #logs = new Map<string, StampLog>();
  readonly #storeChangedUs = new Map<number, number>();
  readonly #away = new Set<number>();
  readonly #exempt = new WeakSet<WireRequest>();
  #epoch = 0;
  #dataLostUs = Number.NEGATIVE_INFINITY;
  #maxFactor = 1;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "reloaded") this.#maxFactor = Math.max(this.#maxFactor, fact.factor);
    else if (fact.kind === "fault") this.#checkFault(fact.atUs, fact.fault);
    else if (fact.kind === "event" && fact.event.event_type === "store_away")
      this.#setAway(fact.process, fact.atUs, true);
    else if (fact.kind === "event" && fact.event.event_type === "store_back")
      this.#setAway(fact.process, fact.atUs, false);
    else if (fact.kind === "dispatched") this.#checkExemption(fact.request, fact.atUs);
    else if (fact.kind === "arrived") return this.#arrived(fact.request, fact.atUs);
    return undefined;
  }

  #checkFault(atUs: number, fault: Extract<SimFact, { kind: "fault" }>["fault"]): void {
    if (fault.kind !== "store-restart" && fault.kind !== "store-loss") return;
    this.#epoch += 1;
    this.#dataLostUs = atUs;
  }

  #setAway(process: number, atUs: number, isAway: boolean): void {
    this.#storeChangedUs.set(process, atUs);
    if (isAway) this.#away.add(process);
    else this.#away.delete(process);
  }

  #checkExemption(request: WireRequest, atUs: number): void {
    const { process } = request;
    const isChanging = atUs - (this.#storeChangedUs.get(process) ?? Number.NEGATIVE_INFINITY) <= JITTER_US;
    const isOldLease = atUs - this.#dataLostUs <= LEASE_US + JITTER_US;
    if (this.#away.has(process) || isChanging || isOldLease) this.#exempt.add(request);
  }

  #arrived(request: WireRequest, atUs: number): string | undefined {
    // Units leased before the loss of data are not in the new log.
    if (request.units === 0 || this.#exempt.has(request) || request.dispatchedUs < this.#dataLostUs) return undefined;
    const host = hostOf(this.#plan, request);
    for (const { name, rate } of scopesOf(host, request)) {
      const log = logOf(this.#logs, `${this.#epoch} ${host.name} ${name}`);
      log.add(atUs, request.units);
      const { limit, windowMs } = scaled(rate, this.#maxFactor);
      const count = log.within(windowMs * 1000, atUs);
      if (count > limit)
        return `${count} units arrived at ${host.name} (${name}) within ${windowMs} ms; limit ${limit}`;
    }
    return undefined;
  }
}
