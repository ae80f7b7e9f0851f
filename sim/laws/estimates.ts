import type { SimFact } from "../facts.ts";
import type { CallPlan, HostPlan, Plan, RatePlan } from "../plan.ts";
import { keyOf, type PolicyVersion, scaled } from "../policy.ts";
import { CalmHosts } from "./calm-hosts.ts";
import { boundOf, type Law, type LawMaker, ms } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { isWithin, SentRequests } from "./sent-requests.ts";

/** The heaviest call: with it, a window may stay open by this many units less one. */
const MAX_WEIGHT = 3;

/** A request that is not written yet moves the starts of all behind it: they are foreseen again every few ms. */
const MOVING_SLACK_MS = 10;

/**
 * L4: the time in a refusal is not within the bound that it refuses, not earlier than the requests that were already sent
 * allow, and not later than the windows need for everything that was sent and waits.
 */
export const trueEstimates: LawMaker = {
  title: "a refusal gives a possible time",
  make: (plan, occasion) => new TrueEstimates(plan, occasion),
};

class TrueEstimates implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #policies: PoliciesInForce;
  readonly #calm: CalmHosts;
  readonly #sent = new SentRequests();
  readonly #open = new Map<CallPlan, number>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
    this.#calm = new CalmHosts(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    this.#calm.record(fact);
    if (fact.kind === "call") this.#open.set(fact.call, fact.atUs);
    const message =
      fact.kind === "done" && fact.retryAfterMs !== undefined
        ? this.#refused(fact.process, fact.call, fact.retryAfterMs, fact.atUs)
        : undefined;
    if (fact.kind === "done") this.#open.delete(fact.call);
    this.#sent.record(fact);
    return message;
  }

  #refused(process: number, call: CallPlan, retryAfterMs: number, atUs: number): string | undefined {
    const host = this.#plan.hosts.find(({ name }) => name === call.host) as HostPlan;
    const limits = host.roleLimits[call.role];
    const waitedUs = atUs - (this.#open.get(call) ?? atUs);
    const computeUs = this.#plan.processes[process]?.computeUs ?? 0;
    const isCounted = call.method !== "HEAD" || limits?.countsHead === true;
    if (limits === undefined || computeUs > 0 || !isCounted || !this.#calm.isCalm(call.host)) return undefined;
    this.#occasion();
    const boundMs = boundOf(call, limits.maxDelayMs);
    const told = `call ${call.id} was told to come again in ${retryAfterMs} ms`;
    const isMoving = this.#sent
      .of(process, host.name)
      .some(one => one.writtenUs === undefined || (one.isCold && one.endedUs === undefined));
    const slackMs = isMoving ? MOVING_SLACK_MS : 0;
    if (waitedUs / 1000 + retryAfterMs + slackMs < boundMs)
      return `${told} after ${ms(waitedUs)}; its bound is ${boundMs} ms`;
    const atLeastUs = this.#atLeastUs(process, host, call, atUs, waitedUs > 0);
    if ((retryAfterMs + slackMs) * 1000 < atLeastUs) return `${told}; what was sent needs ${ms(atLeastUs)}`;
    const atMostUs = this.#atMostUs(process, host, call, atUs);
    return retryAfterMs * 1000 > atMostUs ? `${told}; all that was sent and waits needs ${ms(atMostUs)}` : undefined;
  }

  /**
   * When the requests that were sent leave enough units free, in the window that takes longest. A call that was queued
   * gets the time of its place: those behind it are sent in the moment in which it leaves.
   */
  #atLeastUs(process: number, host: HostPlan, call: CallPlan, atUs: number, wasQueued: boolean): number {
    const { role, weight } = call;
    const key = keyOf(host, call);
    const sent = this.#sent.of(process, host.name).filter(one => !wasQueued || one.dispatchedUs < atUs);
    let untilUs = atUs;
    for (const { rate, isTotal } of ratesOf(host, role, this.#policies.of(process))) {
      const spanUs = (rate.windowMs + host.guardMs) * 1000;
      const counted = sent
        .filter(
          one => one.units > 0 && isWithin(one, atUs - spanUs) && (isTotal || (one.role === role && one.key === key)),
        )
        .flatMap(one => Array.from({ length: one.units }, () => one.writtenUs ?? atUs))
        .sort((a, b) => a - b);
      // The last unit that must have left the window before the call fits.
      const last = counted[counted.length + weight - rate.limit - 1];
      if (last !== undefined) untilUs = Math.max(untilUs, last + spanUs);
    }
    return untilUs - atUs;
  }

  /** As if each window had to pass on its own, with everything that was sent or waits at the host. */
  #atMostUs(process: number, host: HostPlan, call: CallPlan, atUs: number): number {
    const waiting = [...this.#open.keys()]
      .filter(one => one.process === process && one.host === host.name)
      .reduce((sum, { weight }) => sum + weight, 0);
    let sumUs = 0;
    const version = this.#policies.strictestOf(process);
    for (const { rate, owner } of rolesOf(host).flatMap(role => ratesOf(host, role, version))) {
      const spanUs = (rate.windowMs + host.guardMs) * 1000;
      const sent = this.#sent
        .of(process, host.name)
        .filter(one => isWithin(one, atUs - spanUs) && (owner === undefined || one.role === owner))
        .reduce((sum, { units }) => sum + units, 0);
      const perWindow = Math.max(1, rate.limit - (MAX_WEIGHT - 1));
      sumUs += Math.ceil((sent + waiting + call.weight) / perWindow) * spanUs;
    }
    return sumUs;
  }
}

function rolesOf({ roleLimits }: HostPlan): readonly CallPlan["role"][] {
  return Object.keys(roleLimits) as CallPlan["role"][];
}

interface ScaledRate {
  readonly rate: RatePlan;
  readonly isTotal: boolean;
  readonly owner: CallPlan["role"] | undefined;
}

function ratesOf(host: HostPlan, role: CallPlan["role"], { factor, hasTotals }: PolicyVersion): readonly ScaledRate[] {
  const own = host.roleLimits[role]?.rates ?? [];
  return [
    ...own.map(rate => ({ rate: scaled(rate, factor), isTotal: false, owner: role })),
    ...(hasTotals ? host.total : []).map(rate => ({ rate: scaled(rate, factor), isTotal: true, owner: undefined })),
  ];
}
