import type { SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

/** What an admitted call is kept beyond its own bound, because timers come late. */
const MIN_GRACE_MS = 5;
/** A timer's millisecond, and more. */
const SLACK_US = 20_000;
/** So often clocks are read in a turn that many share, each time with what computing costs in a world that creeps. */
const CLOCK_READS = 100;

/** How long a store that does not answer is waited for. */
const SILENCE_US = 1_000_000;

/**
 * L4: a call is refused on arrival or served within its bound. Without a bound of its own a refusal for rates comes at
 * the instant of arrival; with one, the end of the waiting comes no later than a tenth beyond it.
 */
export const boundedWait: LawMaker = {
  title: "a wait is bounded, and judged on arrival",
  make: plan => new BoundedWait(plan),
};

class BoundedWait implements Law {
  readonly #plan: Plan;
  readonly #arrivedUs = new Map<CallPlan, number>();
  /** When each process was last out of step: stalled, suspended, or given other limits. */
  #disturbedUs = Number.NEGATIVE_INFINITY;
  #silenceUs = 0;
  readonly #doneUs = new Map<CallPlan, number>();
  /** What was sent for each page. */
  readonly #sent = new Map<string, readonly WireRequest[]>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "call") this.#arrivedUs.set(fact.call, fact.atUs);
    if (fact.kind === "fault" && /stall|suspend|store/.test(fact.fault.kind)) this.#disturbedUs = fact.atUs;
    if (fact.kind === "fault" && fact.fault.kind === "store-away" && fact.fault.isSilent)
      this.#silenceUs = 2 * SILENCE_US;
    if (fact.kind === "reloaded") this.#disturbedUs = fact.atUs;
    if (fact.kind === "written") {
      const page = pageOf(fact.sending.call);
      this.#sent.set(page, [...(this.#sent.get(page) ?? []), fact.sending]);
    }
    if (fact.kind === "dispatched" && fact.sending.attempt === 1)
      return this.#judge(fact.sending.call, fact.atUs, "sent");
    if (fact.kind !== "done") return undefined;
    this.#doneUs.set(fact.call, fact.atUs);
    const wrong = this.#refused(fact.call, fact.error, fact.atUs);
    // What goes out for it later goes out for others who asked the same.
    this.#arrivedUs.delete(fact.call);
    return wrong;
  }

  #refused(call: CallPlan, error: string | undefined, atUs: number): string | undefined {
    if (error === "DOCSTOKG_RATE_LIMITED" || error === "DOCSTOKG_BUSY") return this.#judge(call, atUs, "refused");
    return undefined;
  }

  #judge(call: CallPlan, atUs: number, how: "sent" | "refused"): string | undefined {
    const arrivedUs = this.#arrivedUs.get(call);
    // A retry has waited for its server, and is bounded by its deadline.
    if (how === "sent") this.#arrivedUs.delete(call);
    if (arrivedUs === undefined || this.#disturbedUs >= arrivedUs) return undefined;
    // Who has waited for the answer to somebody else's request, and could not share it, starts from there.
    if (call.method === "GET" && this.#hasJoined(call, arrivedUs)) return undefined;
    const waitedUs = atUs - arrivedUs;
    const boundMs = Math.min(call.maxWaitMs ?? Number.POSITIVE_INFINITY, call.deadlineMs ?? Number.POSITIVE_INFINITY);
    const { store, breakers, processes } = this.#plan;
    const slackUs = SLACK_US + CLOCK_READS * processes.reduce((sum, { computeUs }) => sum + computeUs, 0);
    // Whether others leave room only the store can say, and that takes a moment even for who may not wait.
    // What is under way, a question that came before, the one that counts it in; and once more when what was given had
    // to go back for want of a slot.
    const storeDelayUs = store === undefined ? 0 : 8 * (store.delayMs + store.jitterMs) * 1000 + this.#silenceUs;
    if (call.maxWaitMs === undefined && call.deadlineMs === undefined) {
      return how === "refused" && waitedUs > slackUs + storeDelayUs && store === undefined
        ? `call ${call.id} was refused ${ms(waitedUs)} after it came`
        : undefined;
    }
    const graceMs = Math.max(MIN_GRACE_MS, boundMs / 10);
    const mostUs = (boundMs + graceMs + (how === "sent" ? breakers.jitterMs : 0)) * 1000 + storeDelayUs + slackUs;
    return waitedUs > mostUs
      ? `call ${call.id} was ${how} after ${ms(waitedUs)}; its bound is ${boundMs} ms`
      : undefined;
  }

  /**
   * One that was sent before is under way until its call is over, between two attempts too; and beyond that for those
   * who have joined it.
   */
  #hasJoined(call: CallPlan, arrivedUs: number): boolean {
    const sent = this.#sent.get(pageOf(call)) ?? [];
    return sent.some(one => {
      const endUs = Math.max(one.endedUs ?? Number.POSITIVE_INFINITY, this.#doneUs.get(one.call) ?? arrivedUs);
      return one.call !== call && endUs >= arrivedUs;
    });
  }
}

function pageOf({ process, host, role, page }: CallPlan): string {
  return `${process} ${host} ${role} ${page}`;
}

/** L2, L4: within a lane nobody is served before somebody who came earlier and waits. */
export const fairness: LawMaker = {
  title: "first come, first served",
  make: plan => new Fairness(plan),
};

class Fairness implements Law {
  readonly #waiting = new Map<string, CallPlan[]>();
  readonly #disturbed = new Set<string>();
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "call") this.#queueOf(fact.call).push(fact.call);
    if (fact.kind === "done") this.#leave(fact.call);
    if (fact.kind === "reloaded") this.#disturbed.add(`${fact.process}`);
    if (fact.kind === "event") {
      const { event, process } = fact;
      // Who is kept out of the way while a host is cut off goes to the end of the line afterwards.
      if (event.event_type === "breaker_state_change" || event.event_type === "breaker_cooldown_set")
        this.#disturbed.add(`${process} ${event.host}`);
      if (event.event_type === "store_away" || event.event_type === "store_back") this.#disturbed.add(`${process}`);
    }
    if (fact.kind !== "dispatched" || fact.sending.attempt > 1) return undefined;
    const { call, process, host } = fact.sending;
    const queue = this.#queueOf(call);
    const index = queue.indexOf(call);
    if (index < 0) return undefined;
    const isDisturbed = this.#disturbed.has(`${process}`) || this.#disturbed.has(`${process} ${host}`);
    const earlier = queue.slice(0, index).find(other => !this.#mayShare(other, queue));
    this.#leave(call);
    return earlier === undefined || isDisturbed
      ? undefined
      : `call ${call.id} went before call ${earlier.id}, which came first`;
  }

  /** One that asks for the same as another waits for that one's answer, and not in line. */
  #mayShare(call: CallPlan, queue: readonly CallPlan[]): boolean {
    if (call.method !== "GET") return false;
    const isSame = (other: CallPlan) =>
      other !== call && other.page === call.page && other.host === call.host && other.role === call.role;
    return queue.some(isSame) || this.#plan.calls.some(other => isSame(other) && other.atMs <= call.atMs);
  }

  #queueOf(call: CallPlan): CallPlan[] {
    const { process, host, role, method } = call;
    const isHead =
      method === "HEAD" && this.#plan.hosts.find(({ name }) => name === host)?.roleLimits[role]?.countsHead !== true;
    const key = `${process} ${host} ${role} ${isHead}`;
    const queue = this.#waiting.get(key) ?? [];
    this.#waiting.set(key, queue);
    return queue;
  }

  #leave(call: CallPlan): void {
    const queue = this.#queueOf(call);
    const index = queue.indexOf(call);
    if (index >= 0) queue.splice(index, 1);
  }
}
