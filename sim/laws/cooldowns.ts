import type { ResponseFact, SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

interface ObservedCooldown {
  readonly sinceUs: number;
  readonly untilUs: number;
  readonly why: string;
}

/** Whoever stood still hears late, and sends what it was let in for before. */
const DISRUPTIVE_FAULTS: ReadonlySet<string> = new Set([
  "stall",
  "suspend",
  "kill",
  "store-away",
  "store-restart",
  "store-loss",
]);

/**
 * B5: nobody is sent to a host that asked to be left alone, or that an operator has shut, before the time is over or an
 * operator opens it. A process knows at once what it was told itself. With a store the others know soon after, unless
 * one of them, or the store, stood still meanwhile.
 */
export const noSendInCooldown: LawMaker = {
  title: "no send in a cooldown",
  make: plan => new NoSendInCooldown(plan),
};

class NoSendInCooldown implements Law {
  readonly #plan: Plan;
  /** By process and host; and by host alone, for what all know. */
  readonly #cooldowns = new Map<string, ObservedCooldown>();
  readonly #isShared: boolean;
  readonly #propagationUs: number;

  constructor(plan: Plan) {
    this.#plan = plan;
    const { store, faults } = plan;
    this.#isShared = store !== undefined && !faults.some(({ kind }) => DISRUPTIVE_FAULTS.has(kind));
    // To say it and to look it up are four trips at the most; whoever was let in just before may still be connecting.
    this.#propagationUs = 1_000_000 + 4000 * ((store?.delayMs ?? 0) + (store?.jitterMs ?? 0));
  }

  see(fact: SimFact): string | undefined {
    if (fact.kind === "head") this.#recordRetryAfter(fact);
    if (fact.kind === "fault" && fact.fault.kind === "operator") {
      const { process, host, openS } = fact.fault;
      if (openS === 0) this.#clearCooldown(process, host);
      else
        this.#pause(process, host, {
          sinceUs: fact.atUs,
          untilUs: fact.atUs + openS * 1e6,
          why: "an operator has shut it",
        });
    }
    return fact.kind === "dispatched" ? this.#sent(fact.sending, fact.atUs) : undefined;
  }

  #recordRetryAfter({ sending, status, retryAfterMs, atUs }: ResponseFact): void {
    if (retryAfterMs === undefined || !(status === 429 || status === 503 || status === 403)) return;
    const cappedMs = Math.min(retryAfterMs, this.#plan.breakers.retryAfterCapS * 1000);
    const why = `it asked for ${cappedMs} ms`;
    this.#pause(sending.process, sending.host, { sinceUs: atUs, untilUs: atUs + cappedMs * 1000, why });
  }

  /** The later end counts. */
  #pause(process: number, host: string, pause: ObservedCooldown): void {
    for (const key of [`${process} ${host}`, host]) {
      const known = this.#cooldowns.get(key);
      if (known === undefined || known.untilUs < pause.untilUs) this.#cooldowns.set(key, pause);
    }
  }

  /** In this process; where there is a store, in all of them, some sooner than others. */
  #clearCooldown(process: number, host: string): void {
    this.#cooldowns.delete(host);
    this.#cooldowns.delete(`${process} ${host}`);
    if (this.#plan.store === undefined) return;
    for (const number of this.#plan.processes.keys()) this.#cooldowns.delete(`${number} ${host}`);
  }

  #sent({ process, host, id }: WireRequest, atUs: number): string | undefined {
    const shared = this.#isShared ? this.#cooldowns.get(host) : undefined;
    const isKnown = shared !== undefined && atUs >= shared.sinceUs + this.#propagationUs;
    const pause = isKnown ? shared : this.#cooldowns.get(`${process} ${host}`);
    if (pause === undefined || atUs >= pause.untilUs) return undefined;
    return `request ${id} of process ${process} went to ${host} ${ms(pause.untilUs - atUs)} too early: ${pause.why}`;
  }
}
