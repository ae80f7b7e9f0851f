import { nameWithoutPartition } from "../../src/policy/partition-name.ts";
import { isExpiredUnwritten, type SimFact, type WireRequest } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";
import { ObservedCircuits } from "./observed-circuits.ts";

/** A command of an operator takes effect within this time, because reads of the clock cost time. */
const SAME_TURN_US = 5000;

/** How long a probe without a result is counted. */
const PROBE_LEASE_US = 35_000_000;

/** B2: no request is sent while a circuit is open, before its reset time has passed. */
export const noSendWhileOpen: LawMaker = {
  title: "no send while a circuit is open",
  make: (plan, occasion) => new NoSendWhileOpen(plan, occasion),
};

class NoSendWhileOpen implements Law {
  readonly #occasion: () => void;
  readonly #circuits = new ObservedCircuits();
  /** When each circuit opened, and until when. */
  readonly #opened = new Map<string, { readonly atUs: number; readonly untilUs: number }>();
  /** When a call of any process last failed. With a store the open time begins then: the reply that opens comes later. */
  readonly #failedUs = new Map<string, number>();
  readonly #plan: Plan;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    const message = fact.kind === "dispatched" ? this.#check(fact.request, fact.atUs) : undefined;
    this.#circuits.record(fact);
    if (fact.kind === "event" && fact.event.event_type === "breaker_failure")
      this.#failedUs.set(`${fact.event.host} ${fact.event.role}`, fact.atUs);
    if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
      const { host, role, new: state, reset_timeout_s, from_peer } = fact.event;
      const key = `${fact.process} ${host} ${role}`;
      const failedUs = this.#plan.store === undefined ? undefined : this.#failedUs.get(`${host} ${role}`);
      // A circuit opened by a peer stays open for the peer's time, a circuit opened here for the policy's.
      const untilUs = from_peer
        ? fact.atUs + reset_timeout_s * 1e6
        : (failedUs ?? fact.atUs) + this.#plan.breakers.resetS * 1e6;
      if (state === "open") this.#opened.set(key, { atUs: fact.atUs, untilUs });
      if (state === "closed") this.#opened.delete(key);
    }
    return message;
  }

  #check(request: WireRequest, atUs: number): string | undefined {
    const { process, breakerUnit: host, role, id } = request;
    const { jitterMs } = this.#plan.breakers;
    const opened = this.#opened.get(`${process} ${host} ${role}`);
    if (opened === undefined) return undefined;
    // Another probe of the circuit may have failed while this one waited for its jitter.
    if (jitterMs > 0 && atUs - opened.atUs <= jitterMs * 1000 + 1000) return undefined;
    this.#occasion();
    const { state } = this.#circuits.ofRequest(request);
    if (state === "open") return `request ${id} was sent to ${host} (${role}) while its circuit was open`;
    // The circuit read the clock before it emitted the change.
    const emitDelayUs = 30 * (this.#plan.processes[process]?.computeUs ?? 0);
    const earlyUs = opened.untilUs - emitDelayUs - atUs;
    return earlyUs > 0 ? `request ${id} was sent to ${host} (${role}) ${ms(earlyUs)} before its reset time` : undefined;
  }
}

/** B2: at most `trial_calls` probes of a half-open circuit run at a time, over all processes that share a store. */
export const fewProbes: LawMaker = {
  title: "probes within trial_calls",
  make: (plan, occasion) => {
    const circuits = new ObservedCircuits();
    const isShared = plan.store !== undefined && !plan.faults.some(({ kind }) => kind.startsWith("store"));
    /** When any process last opened each circuit. */
    const openedUs = new Map<string, number>();
    return {
      check: fact => {
        circuits.record(fact);
        if (fact.kind === "event" && fact.event.event_type === "breaker_state_change" && fact.event.new === "open")
          openedUs.set(`${fact.event.host} ${fact.event.role}`, fact.atUs);
        if (fact.kind !== "dispatched") return undefined;
        const { breakerUnit: host, role } = fact.request;
        if (circuits.ofRequest(fact.request).state !== "half_open") return undefined;
        const processes = isShared ? plan.processes.map((_, process) => process) : [fact.request.process];
        // A probe that was permitted before another process opened the circuit again is not one of the new state. It is
        // sent after its jitter.
        const sinceUs = (openedUs.get(`${host} ${role}`) ?? Number.NEGATIVE_INFINITY) + plan.breakers.jitterMs * 1000;
        const probes = processes
          .map(process => circuits.of(process, host, role))
          .filter(({ state }) => state === "half_open")
          .flatMap(({ inFlight }) => [...inFlight])
          .filter(one => one === fact.request || one.dispatchedUs > sinceUs)
          // The lease of a probe ends also if its process was killed.
          .filter(one => fact.atUs - one.dispatchedUs < PROBE_LEASE_US).length;
        if (probes >= plan.breakers.trialCalls) occasion();
        if (probes <= plan.breakers.trialCalls) return undefined;
        return `${probes} probes at ${host} (${role}); limit ${plan.breakers.trialCalls}`;
      },
    };
  },
};

/** B3: a circuit changes state only for requests of its current state, time or an operator, never for older results. */
export const noStaleResult: LawMaker = {
  title: "no result of an older generation counts",
  make: (plan, occasion) => new NoStaleResult(plan, occasion),
};

class NoStaleResult implements Law {
  readonly #occasion: () => void;
  readonly #circuits = new ObservedCircuits();
  readonly #isShared: boolean;
  readonly #calls: readonly CallPlan[];
  #operatedUs = Number.NEGATIVE_INFINITY;
  /** Hosts whose circuits an operator has closed. Each process closes those of their partitions when it reads the order. */
  readonly #closedHosts = new Set<string>();

  constructor({ store, calls }: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#isShared = store !== undefined;
    this.#calls = calls;
  }

  check(fact: SimFact, touched: ReadonlySet<WireRequest>): string | undefined {
    let message: string | undefined;
    if (fact.kind === "fault" && fact.fault.kind === "operator") {
      this.#operatedUs = fact.atUs;
      if (fact.fault.openS === 0) this.#closedHosts.add(fact.fault.host);
    }
    if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
      const { host, role, old, new: state, from_peer } = fact.event;
      // Time alone makes a circuit half-open; a change applied from a peer is checked at the peer.
      if (
        state !== "half_open" &&
        from_peer === undefined &&
        fact.atUs - this.#operatedUs > SAME_TURN_US &&
        host !== undefined &&
        role !== undefined
      ) {
        this.#occasion();
        const { inFlight, abandoned, failures } = this.#circuits.of(fact.process, host, role);
        // The store counts the failures of all processes: the circuit opens when its reply arrives.
        const isCounted = this.#isShared && old === "closed" && state === "open" && failures > 0;
        const expired = [...inFlight, ...abandoned].filter(one => isExpiredUnwritten(one, fact.atUs, this.#calls));
        const causes = [...touched, ...expired].filter(
          one => one.process === fact.process && one.breakerUnit === host && one.role === role,
        );
        const isOrdered = state === "closed" && this.#closedHosts.has(nameWithoutPartition(host) ?? "");
        if (!isCounted && !isOrdered && !causes.some(one => this.#circuits.isCurrent(one)))
          message = `${host} (${role}) changed from ${old} to ${state} for a result of an older generation`;
      }
    }
    this.#circuits.record(fact);
    return message;
  }
}
