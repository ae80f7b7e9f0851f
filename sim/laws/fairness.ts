import { commonName } from "../../src/policy/partition-name.ts";
import type { SimFact } from "../facts.ts";
import type { CallPlan, HostPlan, Plan } from "../plan.ts";
import { keyOf } from "../policy.ts";
import { type Law, type LawMaker, turnUs } from "./law.ts";

/** L2, L4: calls of one host and role are sent in the order of their arrival. */
export const fairness: LawMaker = {
  title: "first come, first served",
  make: (plan, occasion) => new Fairness(plan, occasion),
};

class Fairness implements Law {
  readonly #occasion: () => void;
  readonly #waiting = new Map<string, CallPlan[]>();
  readonly #disturbed = new Set<string>();
  /** Calls that another one has overtaken. One that is refused at the same instant was out of the queue before. */
  readonly #overtaken = new Map<CallPlan, { readonly message: string; readonly atUs: number }>();
  readonly #plan: Plan;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "call") this.#queueOf(fact.call).push(fact.call);
    if (fact.kind === "done") {
      this.#leave(fact.call);
      return this.#wasOvertaken(fact.call, fact.atUs);
    }
    if (fact.kind === "reloaded") this.#disturbed.add(`${fact.process}`);
    if (fact.kind === "event") {
      const { event, process } = fact;
      // A call that waited for a circuit joins the end of the queue afterwards.
      if (event.event_type === "breaker_state_change" || event.event_type === "breaker_cooldown_set")
        this.#disturbed.add(`${process} ${commonName(event.host ?? "")}`);
      if (event.event_type === "store_away" || event.event_type === "store_back") this.#disturbed.add(`${process}`);
    }
    if (fact.kind !== "dispatched" || fact.request.attempt > 1) return undefined;
    const { call, process, host } = fact.request;
    const queue = this.#queueOf(call);
    const index = queue.indexOf(call);
    if (index < 0) return undefined;
    const overtaken = this.#wasOvertaken(call, Number.POSITIVE_INFINITY);
    if (overtaken !== undefined) return overtaken;
    const isDisturbed = this.#disturbed.has(`${process}`) || this.#disturbed.has(`${process} ${host}`);
    if (queue.length > 1 && !isDisturbed) this.#occasion();
    const earlier = queue.slice(0, index).find(other => !this.#mayBeCoalesced(other, queue));
    this.#leave(call);
    if (earlier !== undefined && !isDisturbed && !this.#overtaken.has(earlier)) {
      const message = `call ${call.id} was sent before call ${earlier.id}, which arrived first`;
      this.#overtaken.set(earlier, { message, atUs: fact.atUs });
    }
    return undefined;
  }

  #wasOvertaken(call: CallPlan, atUs: number): string | undefined {
    const overtaken = this.#overtaken.get(call);
    this.#overtaken.delete(call);
    return overtaken !== undefined && overtaken.atUs + turnUs(this.#plan, call.process) < atUs
      ? overtaken.message
      : undefined;
  }

  /** True for a call that may be coalesced with another one: it waits for that response, not in the queue. */
  #mayBeCoalesced(call: CallPlan, queue: readonly CallPlan[]): boolean {
    if (call.method !== "GET") return false;
    const isSame = (other: CallPlan) =>
      other !== call && other.page === call.page && other.host === call.host && other.role === call.role;
    return queue.some(isSame) || this.#plan.calls.some(other => isSame(other) && other.atMs <= call.atMs);
  }

  #queueOf(call: CallPlan): CallPlan[] {
    const { process, host, role, method } = call;
    const plan = this.#plan.hosts.find(({ name }) => name === host) as HostPlan;
    const isHead = method === "HEAD" && plan.roleLimits[role]?.countsHead !== true;
    const key = `${process} ${keyOf(plan, call)} ${role} ${isHead}`;
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
