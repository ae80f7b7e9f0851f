import type { SimFact, WireRequest } from "../facts.ts";

/** The requests of each process and host that were written, or may still be. */
export class SentRequests {
  readonly #sent = new Map<string, Set<WireRequest>>();

  /** Call it with each fact after the law has checked it. */
  record(fact: SimFact): void {
    if (fact.kind === "dispatched") this.#of(fact.request.process, fact.request.host).add(fact.request);
    else if (fact.kind === "ended") this.#dropUnwritten(fact.request);
    else if (fact.kind === "done") {
      // A request that was aborted before it was written has ended, although no `ended` fact has been emitted yet.
      for (const request of this.#of(fact.process, fact.call.host))
        if (request.call === fact.call) this.#dropUnwritten(request);
    }
  }

  of(process: number, host: string): readonly WireRequest[] {
    return [...this.#of(process, host)];
  }

  #of(process: number, host: string): Set<WireRequest> {
    const key = `${process} ${host}`;
    const sent = this.#sent.get(key) ?? new Set();
    this.#sent.set(key, sent);
    return sent;
  }

  #dropUnwritten(request: WireRequest): void {
    if (request.writtenUs === undefined) this.#of(request.process, request.host).delete(request);
  }
}

/** Whether a request falls into the interval after `fromUs`. One that is not written yet does: it counts as written now. */
export function isWithin({ writtenUs }: WireRequest, fromUs: number): boolean {
  return writtenUs === undefined || writtenUs > fromUs;
}
