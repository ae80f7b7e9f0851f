import type { HubEvent } from "../../src/http/hub-options.ts";
import { commonName } from "../../src/policy/partition-name.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { isSameBudget } from "./scopes.ts";

/**
 * Where nothing but the configured rates delays a call: no store, no credits, no even spacing, no pace, no announced
 * limits, and no full slots, stall, fault, failure, circuit or cooldown so far. Only there a law can compute the time of
 * a call from the requests.
 */
export class CalmHosts {
  readonly #plan: Plan;
  readonly #disturbed = new Set<string>();
  readonly #inFlight = new Set<WireRequest>();
  /** Everywhere. */
  #isDisturbed = false;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** Call it with each fact before the law checks it. */
  record(fact: SimFact): void {
    if (fact.kind === "dispatched") this.#sent(fact.request);
    else if (fact.kind === "ended") this.#inFlight.delete(fact.request);
    if (fact.kind === "fault" && "host" in fact.fault) this.#disturbed.add(fact.fault.host);
    else if (fact.kind === "fault" && (fact.fault.kind === "stall" || fact.fault.kind === "suspend"))
      this.#isDisturbed = true;
    else if (fact.kind === "head" && fact.status >= 400) this.#disturbed.add(fact.request.host);
    else if (fact.kind === "ended" && fact.how === "failed") this.#disturbed.add(fact.request.host);
    else if (fact.kind === "event") this.#circuitChanged(fact.event);
  }

  isCalm(host: string): boolean {
    const { store, isAimd, hosts } = this.#plan;
    const plan = hosts.find(({ name }) => name === host);
    if (plan === undefined || store !== undefined || isAimd) return false;
    if (plan.isSmooth || plan.credits !== undefined || plan.server.announces !== "nothing") return false;
    return !this.#isDisturbed && !this.#disturbed.has(host);
  }

  /** Slow calls and operators start a cooldown although no request has failed. */
  #circuitChanged(event: HubEvent): void {
    if (event.event_type !== "breaker_state_change" && event.event_type !== "breaker_cooldown_set") return;
    if (event.host !== undefined) this.#disturbed.add(commonName(event.host));
  }

  #sent(request: WireRequest): void {
    this.#inFlight.add(request);
    const { hosts, maxInFlight } = this.#plan;
    if (this.#inFlight.size >= maxInFlight) this.#isDisturbed = true;
    const { host, role } = request;
    const most = hosts.find(({ name }) => name === host)?.roleLimits[role]?.maxConcurrent ?? 0;
    const there = [...this.#inFlight].filter(one => isSameBudget(one, request)).length;
    if (there >= most) this.#disturbed.add(host);
  }
}
