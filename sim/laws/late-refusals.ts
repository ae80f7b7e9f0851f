import type { SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { CalmHosts } from "./calm-hosts.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

/** Facts of one turn of the event loop are at most this far apart. */
const SAME_TURN_US = 1000;

/** How long a request over a new connection counts as being written without a response, and some time for timers. */
const NEW_CONNECTION_US = 5_010_000;

/**
 * L4: a call that has no chance is refused on arrival. One that waits is refused later only when something has happened
 * that moves its start, never because its bound is over.
 */
export const noExhaustedBound: LawMaker = {
  title: "no call waits for its whole bound and is refused then",
  make: (plan, occasion) => new NoExhaustedBound(plan, occasion),
};

class NoExhaustedBound implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #calm: CalmHosts;
  readonly #arrivedUs = new Map<CallPlan, number>();
  /** When something last happened in a process that may move the start of a call. */
  readonly #newsUs = new Map<number, number>();
  /** Requests that count as written now: until they are written, over a new connection until their response begins. */
  readonly #unstamped = new Set<WireRequest>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#calm = new CalmHosts(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#calm.record(fact);
    const message =
      fact.kind === "done" && fact.retryAfterMs !== undefined
        ? this.#refused(fact.process, fact.call, fact.atUs)
        : undefined;
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "done") this.#arrivedUs.delete(fact.call);
    if (fact.kind === "dispatched") this.#unstamped.add(fact.request);
    if (fact.kind === "head" || (fact.kind === "written" && !fact.request.isCold)) this.#unstamped.delete(fact.request);
    if (fact.kind === "ended" && fact.request.writtenUs === undefined) this.#unstamped.delete(fact.request);
    if (fact.kind === "done")
      for (const one of this.#unstamped)
        if (one.call === fact.call && one.writtenUs === undefined) this.#unstamped.delete(one);
    if (isNews(fact)) this.#newsUs.set("process" in fact ? fact.process : fact.request.process, fact.atUs);
    return message;
  }

  #refused(process: number, call: CallPlan, atUs: number): string | undefined {
    const waitedUs = atUs - (this.#arrivedUs.get(call) ?? atUs);
    const newsUs = this.#newsUs.get(process) ?? Number.NEGATIVE_INFINITY;
    const isMoving = [...this.#unstamped].some(
      one => one.process === process && one.host === call.host && atUs - (one.writtenUs ?? atUs) <= NEW_CONNECTION_US,
    );
    const computeUs = this.#plan.processes[process]?.computeUs ?? 0;
    if (computeUs > 0 || !this.#calm.isCalm(call.host) || waitedUs <= SAME_TURN_US) return undefined;
    this.#occasion();
    return !isMoving && atUs - newsUs > SAME_TURN_US
      ? `call ${call.id} was refused after ${ms(waitedUs)}, and nothing had happened that moved its start`
      : undefined;
  }
}

type News = Exclude<
  Extract<SimFact, { process: number } | { request: WireRequest }>,
  { kind: "done" | "event" | "snapshot" }
>;

function isNews(fact: SimFact): fact is News {
  return ("process" in fact || "request" in fact) && !OTHER.has(fact.kind);
}

const OTHER: ReadonlySet<string> = new Set(["arrived", "rejected", "done", "event", "snapshot"]);
