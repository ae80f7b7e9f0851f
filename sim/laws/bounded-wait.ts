import type { SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, Plan, RatePlan } from "../plan.ts";
import { CalmHosts } from "./calm-hosts.ts";
import { boundOf, type Law, type LawMaker, ms, turnUs } from "./law.ts";

/** Tolerance for early and late timers. */
const SLACK_US = 20_000;

/** How long a process waits for a silent store. */
const SILENCE_US = 1_000_000;

/**
 * L4: a call is sent or refused within its own bound. Without one, `max_delay_ms` bounds the wait for rates, which can be
 * checked where nothing else delays a call.
 */
export const boundedWait: LawMaker = {
  title: "no call waits longer than its bound",
  make: (plan, occasion) => new BoundedWait(plan, occasion),
};

class BoundedWait implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #calm: CalmHosts;
  readonly #arrivedUs = new Map<CallPlan, number>();
  /** When each call was sent for the first time, or ended before. */
  readonly #decidedUs = new Map<CallPlan, number>();
  /** When a process was last stalled or suspended, the store failed, or the limits changed. */
  #disturbedUs = Number.NEGATIVE_INFINITY;
  #silenceUs = 0;
  readonly #doneUs = new Map<CallPlan, number>();
  /** Requests that were sent for each page. */
  readonly #sent = new Map<string, readonly WireRequest[]>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#calm = new CalmHosts(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#calm.record(fact);
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "fault" && /stall|suspend|store/.test(fact.fault.kind)) this.#disturbedUs = fact.atUs;
    if (fact.kind === "fault" && fact.fault.kind === "store-away" && fact.fault.isSilent)
      this.#silenceUs = 2 * SILENCE_US;
    if (fact.kind === "reloaded") this.#disturbedUs = fact.atUs;
    // Also one that is never written: the calls that have joined it wait while it is connecting.
    if (fact.kind === "dispatched") {
      const page = pageOf(fact.request.call);
      this.#sent.set(page, [...(this.#sent.get(page) ?? []), fact.request]);
    }
    if (fact.kind === "dispatched" && fact.request.attempt === 1)
      return this.#check(fact.request.call, fact.atUs, "sent");
    if (fact.kind !== "done") return undefined;
    this.#doneUs.set(fact.call, fact.atUs);
    const message = this.#refused(fact.call, fact.error, fact.atUs);
    // Later requests of this call are sent for coalesced calls.
    this.#decided(fact.call, fact.atUs);
    return message;
  }

  #refused(call: CallPlan, error: string | undefined, atUs: number): string | undefined {
    if (error === "DOCSTOKG_RATE_LIMITED" || error === "DOCSTOKG_BUSY") return this.#check(call, atUs, "refused");
    return undefined;
  }

  #check(call: CallPlan, atUs: number, how: "sent" | "refused"): string | undefined {
    const arrivedUs = this.#arrivedUs.get(call);
    // Retries are bounded by the deadline only.
    if (how === "sent") this.#decided(call, atUs);
    if (arrivedUs === undefined || this.#disturbedUs >= arrivedUs) return undefined;
    // A coalesced call that could not use the response starts waiting when the shared request ended.
    if (call.method === "GET" && this.#hasJoined(call, arrivedUs)) return undefined;
    const waitedUs = atUs - arrivedUs;
    const boundMs = boundOf(call, this.#maxDelayMs(call));
    const { store, breakers, processes } = this.#plan;
    // Calls that arrive together share the time of their process.
    const slackUs = SLACK_US + processes.reduce((sum, _, process) => sum + this.#turnsUs(process, arrivedUs), 0);
    // A call asks the store even when maxWaitMs is 0. It may wait for the exchange in progress, an earlier request, its
    // own, and once more when leased units were returned because no slot was free: eight one-way trips. Costs are leased
    // after the units, which takes four more.
    const trips = this.#plan.hosts.find(({ name }) => name === call.host)?.credits === undefined ? 8 : 12;
    const storeDelayUs = store === undefined ? 0 : trips * (store.delayMs + store.jitterMs) * 1000 + this.#silenceUs;
    const maxUs = (boundMs + (how === "sent" ? breakers.jitterMs : 0)) * 1000 + storeDelayUs + slackUs;
    if (waitedUs > 0 && Number.isFinite(maxUs)) this.#occasion();
    return waitedUs > maxUs
      ? `call ${call.id} was ${how} after ${ms(waitedUs)}; its bound is ${boundMs} ms`
      : undefined;
  }

  #decided(call: CallPlan, atUs: number): void {
    if (this.#arrivedUs.delete(call)) this.#decidedUs.set(call, atUs);
  }

  /** The turns that a process has taken since then for its calls. While it computes, the time of all processes passes. */
  #turnsUs(process: number, sinceUs: number): number {
    const waiting = [...this.#arrivedUs.keys()].filter(call => call.process === process).length;
    const decided = [...this.#decidedUs].filter(([call, atUs]) => call.process === process && atUs >= sinceUs).length;
    return (1 + waiting + decided) * turnUs(this.#plan, process);
  }

  #maxDelayMs({ host, role }: CallPlan): number {
    const limits = this.#plan.hosts.find(({ name }) => name === host)?.roleLimits[role];
    if (!this.#calm.isCalm(host) || limits === undefined) return Number.POSITIVE_INFINITY;
    return limits.maxDelayMs + aloneMs(limits.rates);
  }

  /**
   * True when a request for the same page was in progress. It is in progress until its call ends, also between two
   * attempts, and longer when other calls have joined it.
   */
  #hasJoined(call: CallPlan, arrivedUs: number): boolean {
    const sent = this.#sent.get(pageOf(call)) ?? [];
    return sent.some(one => {
      const endUs = Math.max(one.endedUs ?? Number.POSITIVE_INFINITY, this.#doneUs.get(one.call) ?? arrivedUs);
      return one.call !== call && endUs >= arrivedUs;
    });
  }
}

/** In its second and third window a call may wait for the answer to the one before, which `max_delay_ms` does not bound. */
function aloneMs(rates: readonly RatePlan[]): number {
  return Math.min(1000, ...rates.map(({ windowMs }) => windowMs / 20));
}

function pageOf({ process, host, role, page }: CallPlan): string {
  return `${process} ${host} ${role} ${page}`;
}
