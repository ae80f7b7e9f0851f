import type { CircuitState } from "../../src/breaker/breaker-events.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

/** What an operator does takes a moment where reading a clock does. */
const SAME_TURN_US = 5000;

interface ObservedCircuit {
  state: CircuitState;
  sinceUs: number;
  /** Counts changes of state. */
  generation: number;
  /** What has gone since the last change and is not over. */
  readonly out: Set<WireRequest>;
}

/** What can be seen of each circuit from outside. */
class ObservedCircuits {
  readonly #observed = new Map<string, ObservedCircuit>();
  readonly #generationOf = new WeakMap<WireRequest, number>();

  of(process: number, host: string, role: string): ObservedCircuit {
    const key = `${process} ${host} ${role}`;
    const observed = this.#observed.get(key) ?? { state: "closed", sinceUs: 0, generation: 0, out: new Set() };
    this.#observed.set(key, observed);
    return observed;
  }

  /** True when a sending went under the state that its circuit is in now. */
  isCurrent(sending: WireRequest): boolean {
    return this.#generationOf.get(sending) === this.ofSending(sending).generation;
  }

  ofSending({ process, host, role }: WireRequest): ObservedCircuit {
    return this.of(process, host, role);
  }

  /** To be told of each fact after it was judged. */
  record(fact: SimFact): void {
    if (fact.kind === "dispatched") {
      const observed = this.ofSending(fact.sending);
      this.#generationOf.set(fact.sending, observed.generation);
      observed.out.add(fact.sending);
    } else if (fact.kind === "ended") this.ofSending(fact.sending).out.delete(fact.sending);
    else if (fact.kind === "done") {
      // What was given up before it was written is no longer under way, although the wire does not know yet.
      const { out } = this.of(fact.process, fact.call.host, fact.call.role);
      for (const sending of out) if (sending.call === fact.call && sending.writtenUs === undefined) out.delete(sending);
    } else if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
      const { host, role, new: state } = fact.event;
      if (host === undefined || role === undefined) return;
      const observed = this.of(fact.process, host, role);
      Object.assign(observed, { state, sinceUs: fact.atUs, generation: observed.generation + 1 });
      observed.out.clear();
    }
  }
}

/** B2: an open circuit lets nobody through before its reset time is over. */
export const noSendWhileOpen: LawMaker = {
  title: "no send while a circuit is open",
  make: plan => new NoSendWhileOpen(plan),
};

class NoSendWhileOpen implements Law {
  readonly #circuits = new ObservedCircuits();
  /** When each was opened, and until when. */
  readonly #opened = new Map<string, { readonly atUs: number; readonly untilUs: number }>();
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    const wrong = fact.kind === "dispatched" ? this.#judge(fact.sending, fact.atUs) : undefined;
    this.#circuits.record(fact);
    if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
      const { host, role, new: state, reset_timeout_s, heard } = fact.event;
      const key = `${fact.process} ${host} ${role}`;
      // What others have opened is over when they say; what was opened here, when the policy says.
      const openS = heard ? reset_timeout_s : this.#plan.breakers.resetS;
      if (state === "open") this.#opened.set(key, { atUs: fact.atUs, untilUs: fact.atUs + openS * 1e6 });
      if (state === "closed") this.#opened.delete(key);
    }
    return wrong;
  }

  #judge(sending: WireRequest, atUs: number): string | undefined {
    const { process, host, role, id } = sending;
    const { jitterMs } = this.#plan.breakers;
    const opened = this.#opened.get(`${process} ${host} ${role}`);
    if (opened === undefined) return undefined;
    // The other probe of the same circuit may have failed while this one waited for its jitter.
    if (jitterMs > 0 && atUs - opened.atUs <= jitterMs * 1000 + 1000) return undefined;
    const { state } = this.#circuits.ofSending(sending);
    if (state === "open") return `request ${id} went to ${host} (${role}) while its circuit was open`;
    // The circuit looked at the clock before it told of its change.
    const emitDelayUs = 30 * (this.#plan.processes[process]?.computeUs ?? 0);
    const earlyUs = opened.untilUs - emitDelayUs - atUs;
    return earlyUs > 0 ? `request ${id} went to ${host} (${role}) ${ms(earlyUs)} before its reset time` : undefined;
  }
}

/** B2: a half-open circuit has no more probes under way than its policy says; over all processes, where they share a store. */
export const fewProbes: LawMaker = {
  title: "probes within trial_calls",
  make: plan => {
    const circuits = new ObservedCircuits();
    const isShared = plan.store !== undefined && !plan.faults.some(({ kind }) => kind.startsWith("store"));
    return {
      see: fact => {
        circuits.record(fact);
        if (fact.kind !== "dispatched") return undefined;
        const { host, role } = fact.sending;
        if (circuits.ofSending(fact.sending).state !== "half_open") return undefined;
        const everywhere = isShared ? plan.processes.map((_, process) => process) : [fact.sending.process];
        const probes = everywhere
          .map(process => circuits.of(process, host, role))
          .filter(({ state }) => state === "half_open")
          .reduce((sum, { out }) => sum + out.size, 0);
        if (probes <= plan.breakers.trialCalls) return undefined;
        return `${probes} probes at ${host} (${role}); ${plan.breakers.trialCalls} may be`;
      },
    };
  },
};

/** B3: a circuit changes its state for what was sent under that state, for time, or for an operator; never for older results. */
export const noStaleResult: LawMaker = {
  title: "no result of an older generation counts",
  make: () => new NoStaleResult(),
};

class NoStaleResult implements Law {
  readonly #circuits = new ObservedCircuits();
  #operatedUs = Number.NEGATIVE_INFINITY;

  see(fact: SimFact, touched: ReadonlySet<WireRequest>): string | undefined {
    let wrong: string | undefined;
    if (fact.kind === "fault" && fact.fault.kind === "operator") this.#operatedUs = fact.atUs;
    if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
      const { host, role, old, new: state, heard } = fact.event;
      // Time alone turns open into half-open; and what others tell is for them to answer for.
      if (
        state !== "half_open" &&
        heard === undefined &&
        fact.atUs - this.#operatedUs > SAME_TURN_US &&
        host !== undefined &&
        role !== undefined
      ) {
        const causes = [...touched].filter(
          one => one.process === fact.process && one.host === host && one.role === role,
        );
        if (!causes.some(one => this.#circuits.isCurrent(one)))
          wrong = `${host} (${role}) went from ${old} to ${state} for a result that was older than that`;
      }
    }
    this.#circuits.record(fact);
    return wrong;
  }
}
