import type { Fact, HeadFact, Sending } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { type Law, type LawMaker, ms } from "./law.ts";

interface Pause {
  readonly sinceUs: number;
  readonly untilUs: number;
  readonly why: string;
}

/**
 * B5: nobody is sent to a host that asked to be left alone, or that an operator has shut, before the time is over or an
 * operator opens it. Judged at each process by itself: what one has heard the others do not know in this version.
 */
export const noSendInCooldown: LawMaker = {
  title: "no send in a cooldown",
  make: plan => new NoSendInCooldown(plan),
};

class NoSendInCooldown implements Law {
  readonly #plan: Plan;
  readonly #pauses = new Map<string, Pause>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  see(fact: Fact): string | undefined {
    if (fact.kind === "head") this.#heard(fact);
    if (fact.kind === "fault" && fact.fault.kind === "operator") {
      const { process, host, openS } = fact.fault;
      const key = `${process} ${host}`;
      if (openS === 0) this.#pauses.delete(key);
      else this.#pause(key, { sinceUs: fact.atUs, untilUs: fact.atUs + openS * 1e6, why: "an operator has shut it" });
    }
    return fact.kind === "dispatched" ? this.#sent(fact.sending, fact.atUs) : undefined;
  }

  #heard({ sending, status, asksMs, atUs }: HeadFact): void {
    if (asksMs === undefined || !(status === 429 || status === 503 || status === 403)) return;
    const cappedMs = Math.min(asksMs, this.#plan.breakers.retryAfterCapS * 1000);
    const why = `it asked for ${cappedMs} ms`;
    this.#pause(`${sending.process} ${sending.host}`, { sinceUs: atUs, untilUs: atUs + cappedMs * 1000, why });
  }

  /** The later end counts. */
  #pause(key: string, pause: Pause): void {
    const known = this.#pauses.get(key);
    if (known === undefined || known.untilUs < pause.untilUs) this.#pauses.set(key, pause);
  }

  #sent({ process, host, id }: Sending, atUs: number): string | undefined {
    const pause = this.#pauses.get(`${process} ${host}`);
    if (pause === undefined || atUs >= pause.untilUs) return undefined;
    return `request ${id} of process ${process} went to ${host} ${ms(pause.untilUs - atUs)} too early: ${pause.why}`;
  }
}
