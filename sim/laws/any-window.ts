import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import { type Law, type LawMaker, ms } from "./law.ts";
import { hostOf, JITTER_US, logOf, scopesOf } from "./scopes.ts";
import type { StampLog } from "./stamp-log.ts";

/** What is in a process's stock when its store forgets may still go for so long. */
const LEASE_US = 1_000_000;
/**
 * L1 where it is kept: what one process writes, with the guard, under the policy in force when it was let go. Holds
 * whatever happens to stores, clocks and loops.
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

  see(fact: SimFact): string | undefined {
    if (fact.kind === "reloaded") {
      const { process, factor, isDone } = fact;
      this.#factors.set(process, isDone ? factor : Math.max(factor, this.#factors.get(process) ?? 1));
    }
    if (fact.kind === "dispatched") this.#factorOf.set(fact.sending, this.#factors.get(fact.sending.process) ?? 1);
    if (fact.kind !== "written" || fact.sending.units === 0) return undefined;
    const { sending, atUs } = fact;
    const host = hostOf(this.#plan, sending);
    const factor = this.#factorOf.get(sending) ?? 1;
    for (const { name, rate } of scopesOf(host, sending)) {
      const log = logOf(this.#logs, `${sending.process} ${host.name} ${name}`);
      log.add(atUs, sending.units);
      const { limit, windowMs } = scaled(rate, factor);
      const spanUs = (windowMs + host.guardMs) * 1000;
      const count = log.within(spanUs, atUs);
      if (count > limit)
        return `process ${sending.process} wrote ${count} to ${host.name} (${name}) within ${ms(spanUs)}; ${limit} may be`;
    }
    return undefined;
  }
}

/**
 * L1 where it counts: what arrives at a server, by the server's clock, from all processes together. Promised while the
 * network's jitter stays below the guard and the store remembers. What goes out while a process has no store keeps to
 * that process's share and is judged by `share`; a store that forgets starts anew, and what was under way is not judged.
 */
export const anyWindowAtServer: LawMaker = {
  title: "any window, at the server",
  make: plan => new AnyWindowAtServer(plan),
};

class AnyWindowAtServer implements Law {
  readonly #plan: Plan;
  readonly #logs = new Map<string, StampLog>();
  readonly #flippedUs = new Map<number, number>();
  readonly #away = new Set<number>();
  readonly #exempt = new WeakSet<WireRequest>();
  #epoch = 0;
  #forgotUs = Number.NEGATIVE_INFINITY;
  #widest = 1;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "reloaded") this.#widest = Math.max(this.#widest, fact.factor);
    else if (fact.kind === "fault") this.#checkFault(fact.atUs, fact.fault);
    else if (fact.kind === "event" && fact.event.event_type === "store_away") this.#flip(fact.process, fact.atUs, true);
    else if (fact.kind === "event" && fact.event.event_type === "store_back")
      this.#flip(fact.process, fact.atUs, false);
    else if (fact.kind === "dispatched") this.#judgeMode(fact.sending, fact.atUs);
    else if (fact.kind === "arrived") return this.#arrived(fact.sending, fact.atUs);
    return undefined;
  }

  #checkFault(atUs: number, fault: Extract<SimFact, { kind: "fault" }>["fault"]): void {
    if (fault.kind !== "store-restart" && fault.kind !== "store-loss") return;
    this.#epoch += 1;
    this.#forgotUs = atUs;
  }

  #flip(process: number, atUs: number, isAway: boolean): void {
    this.#flippedUs.set(process, atUs);
    if (isAway) this.#away.add(process);
    else this.#away.delete(process);
  }

  #judgeMode(sending: WireRequest, atUs: number): void {
    const { process } = sending;
    const isFlipping = atUs - (this.#flippedUs.get(process) ?? Number.NEGATIVE_INFINITY) <= JITTER_US;
    const isOldLease = atUs - this.#forgotUs <= LEASE_US + JITTER_US;
    if (this.#away.has(process) || isFlipping || isOldLease) this.#exempt.add(sending);
  }

  #arrived(sending: WireRequest, atUs: number): string | undefined {
    // One that a store gave before it forgot is not in the new log.
    if (sending.units === 0 || this.#exempt.has(sending) || sending.dispatchedUs < this.#forgotUs) return undefined;
    const host = hostOf(this.#plan, sending);
    for (const { name, rate } of scopesOf(host, sending)) {
      const log = logOf(this.#logs, `${this.#epoch} ${host.name} ${name}`);
      log.add(atUs, sending.units);
      const { limit, windowMs } = scaled(rate, this.#widest);
      const count = log.within(windowMs * 1000, atUs);
      if (count > limit) return `${count} arrived at ${host.name} (${name}) within ${windowMs} ms; ${limit} may be`;
    }
    return undefined;
  }
}
