import type { CircuitState } from "../../src/breaker/breaker-events.ts";
import type { SimFact, WireRequest } from "../facts.ts";

interface ObservedCircuit {
  state: CircuitState;
  sinceUs: number;
  /** Number of state changes. */
  generation: number;
  /** Requests sent since the last change that have failed. */
  failures: number;
  /** Requests sent since the last change that have not ended. */
  readonly inFlight: Set<WireRequest>;
  /** Those whose call ended before they were written. Other calls may have joined them, and end them later. */
  readonly abandoned: Set<WireRequest>;
}

/** The state of each circuit, as its events and requests show it. */
export class ObservedCircuits {
  readonly #observed = new Map<string, ObservedCircuit>();
  readonly #generationOf = new WeakMap<WireRequest, number>();

  /** @param host or a partition of it, if that has circuits of its own */
  of(process: number, host: string, role: string): ObservedCircuit {
    const key = `${process} ${host} ${role}`;
    const observed = this.#observed.get(key) ?? {
      state: "closed",
      sinceUs: 0,
      generation: 0,
      failures: 0,
      inFlight: new Set(),
      abandoned: new Set(),
    };
    this.#observed.set(key, observed);
    return observed;
  }

  /** True when the request was sent in the current state of its circuit. */
  isCurrent(request: WireRequest): boolean {
    return this.#generationOf.get(request) === this.ofRequest(request).generation;
  }

  ofRequest({ process, breakerUnit, role }: WireRequest): ObservedCircuit {
    return this.of(process, breakerUnit, role);
  }

  /** Call it with each fact after the law has checked it. */
  record(fact: SimFact): void {
    if (fact.kind === "dispatched") {
      const observed = this.ofRequest(fact.request);
      this.#generationOf.set(fact.request, observed.generation);
      observed.inFlight.add(fact.request);
    } else if (fact.kind === "ended") {
      const observed = this.ofRequest(fact.request);
      observed.inFlight.delete(fact.request);
      observed.abandoned.delete(fact.request);
      if (fact.how !== "complete" && this.isCurrent(fact.request)) observed.failures += 1;
    } else if (fact.kind === "head") {
      const observed = this.ofRequest(fact.request);
      if (fact.status >= 400 && this.isCurrent(fact.request)) observed.failures += 1;
      // The result of a probe is known, although its body may come much later.
      if (fact.status >= 400) observed.inFlight.delete(fact.request);
    } else if (fact.kind === "done") {
      // A request that was aborted before it was written has ended, although no `ended` fact has been emitted yet.
      for (const observed of this.#observed.values())
        for (const request of observed.inFlight)
          if (request.call === fact.call && request.process === fact.process && request.writtenUs === undefined) {
            observed.inFlight.delete(request);
            observed.abandoned.add(request);
            observed.failures += 1;
          }
    } else if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
      const { host, role, new: state } = fact.event;
      if (host === undefined || role === undefined) return;
      const observed = this.of(fact.process, host, role);
      Object.assign(observed, { state, sinceUs: fact.atUs, generation: observed.generation + 1, failures: 0 });
      observed.inFlight.clear();
      observed.abandoned.clear();
    }
  }
}
