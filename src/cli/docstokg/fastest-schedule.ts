/**
 * A lower bound for the duration of a run. Each budget (of a host or service) has granted a number of requests. Its
 * windows need a certain time for them. The longest of these times over all budgets is the bound.
 */
import type { Rate } from "../../core/limits/rate.ts";
import type { HubEvent } from "../../http/hub-options.ts";
import type { LimitPolicies } from "../../policy/limit-policies.ts";
import type { Time } from "../../time/time.ts";

export interface ScheduleBound {
  /** The budget that decides: `api.example.org (metadata)`. */
  readonly budget: string;
  readonly rates: string;
  /** Requests that the budget granted. */
  readonly requests: number;
  /** The least time from the first of these requests to the last. */
  readonly fastestMs: number;
  /** The time from the first grant of these requests to the last. */
  readonly tookMs: number;
  /** From the first request of the run to the last. */
  readonly runMs: number;
}

interface BudgetTraffic {
  readonly name: string;
  readonly rates: readonly Rate[];
  readonly labels: readonly string[];
  readonly firstUs: number;
  lastUs: number;
  requests: number;
}

export class FastestSchedule {
  readonly #limits: LimitPolicies;
  readonly #time: Time;
  readonly #traffic = new Map<string, BudgetTraffic>();
  #firstUs: number | undefined;
  #lastUs = 0;

  constructor(limits: LimitPolicies, time: Time) {
    this.#limits = limits;
    this.#time = time;
  }

  readonly listener = (event: HubEvent): void => {
    if (event.event_type !== "ratelimit.acquire" || event.outcome !== "granted") return;
    const nowUs = this.#time.monotonicUs();
    this.#firstUs ??= nowUs;
    this.#lastUs = nowUs;
    const route = this.#limits.routeByName(event.key, event.role);
    if (route === undefined) return;
    this.#count(`${event.key} (${event.role})`, route.roleBudget, event.weight, nowUs);
    for (const { name, policy } of route.above) this.#count(`${name} (total)`, policy, event.weight, nowUs);
  };

  /** Undefined if no request was granted. */
  bound(): ScheduleBound | undefined {
    const startUs = this.#firstUs;
    if (startUs === undefined) return undefined;
    const runMs = (this.#lastUs - startUs) / 1000;
    let longest: ScheduleBound | undefined;
    for (const { name, rates, labels, firstUs, lastUs, requests } of this.#traffic.values()) {
      const fastestMs = fastestUs(requests, rates) / 1000;
      if (longest !== undefined && longest.fastestMs >= fastestMs) continue;
      const tookMs = (lastUs - firstUs) / 1000;
      longest = { budget: name, rates: labels.join(" + "), requests, fastestMs, tookMs, runMs };
    }
    return longest;
  }

  #count(
    name: string,
    { rates, labels }: { readonly rates: readonly Rate[]; readonly labels: readonly string[] },
    requests: number,
    nowUs: number,
  ): void {
    const existing = this.#traffic.get(name);
    if (existing === undefined) {
      this.#traffic.set(name, { name, rates, labels, firstUs: nowUs, lastUs: nowUs, requests });
      return;
    }
    existing.requests += requests;
    existing.lastUs = nowUs;
  }
}

/** The time from the first request to the last, if each is sent as early as the windows permit. */
export function fastestUs(requests: number, rates: readonly Rate[]): number {
  const sentUs: number[] = [];
  for (let index = 0; index < requests; index += 1) {
    let atUs = sentUs[index - 1] ?? 0;
    for (const { limit, windowUs } of rates) {
      const before = sentUs[index - limit];
      if (before !== undefined) atUs = Math.max(atUs, before + windowUs);
    }
    sentUs.push(atUs);
  }
  return sentUs.at(-1) ?? 0;
}
