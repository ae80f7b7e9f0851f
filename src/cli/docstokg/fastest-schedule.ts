/**
 * How fast a run could have been at most. Each budget, a host's or what several share, has let so many requests through;
 * under its windows they take a certain time from the first of them to the last, whatever anybody does. The longest such
 * stretch is a bound for the whole, however the rest is arranged.
 */
import type { Rate } from "../../core/limits/rate.ts";
import type { HubEvent } from "../../http/hub-options.ts";
import type { LimitPolicies } from "../../policy/limits.ts";
import type { Time } from "../../time/time.ts";

export interface ScheduleBound {
  /** Whose limit binds: `api.example.org metadata`. */
  readonly budget: string;
  readonly rates: string;
  /** How many passed it. */
  readonly requests: number;
  /** From the first of them to the last, at best; the whole run cannot be faster. */
  readonly fastestMs: number;
  /** The same as it was. */
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
    this.#count(`${event.key} ${event.role}`, route.roleBudget, event.weight, nowUs);
    for (const { name, policy } of route.above) this.#count(`${name} in all`, policy, event.weight, nowUs);
  };

  /** Undefined when nothing was sent. */
  bound(): ScheduleBound | undefined {
    const startUs = this.#firstUs;
    if (startUs === undefined) return undefined;
    const runMs = (this.#lastUs - startUs) / 1000;
    let best: ScheduleBound | undefined;
    for (const { name, rates, labels, firstUs, lastUs, requests } of this.#traffic.values()) {
      const fastestMs = fastestUs(requests, rates) / 1000;
      if (best !== undefined && best.fastestMs >= fastestMs) continue;
      const tookMs = (lastUs - firstUs) / 1000;
      best = { budget: name, rates: labels.join(" + "), requests, fastestMs, tookMs, runMs };
    }
    return best;
  }

  #count(
    name: string,
    { rates, labels }: { readonly rates: readonly Rate[]; readonly labels: readonly string[] },
    requests: number,
    nowUs: number,
  ): void {
    const known = this.#traffic.get(name);
    if (known === undefined) {
      this.#traffic.set(name, { name, rates, labels, firstUs: nowUs, lastUs: nowUs, requests });
      return;
    }
    known.requests += requests;
    known.lastUs = nowUs;
  }
}

/** From the first of so many requests to the last, each as early as the windows permit. */
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
