import { commonName } from "../../src/policy/partition-name.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import type { Law, LawMaker } from "./law.ts";

/** The window is counted in tenths: it covers between nine tenths and the whole of its length. */
const LEAST_SHARE = 0.9;

interface AnsweredCall {
  readonly atUs: number;
  readonly isSlow: boolean;
}

/** An event about the same cooldown: its end is converted to the wall clock anew. */
const SAME_END_MS = 5;

/** What one process has seen of one host. */
interface SeenHost {
  calls: AnsweredCall[];
  /** A cooldown has begun, and nothing was sent since. */
  isCooling: boolean;
  /** The window may have been cleared without an event, because a longer cooldown was running: not judged before then. */
  unclearUntilUs: number;
  /** Too many calls were slow at this instant, so a cooldown must begin at it. */
  dueUs: number | undefined;
  /** The end of the last cooldown for slow calls, by the wall clock. */
  untilMs: number;
}

/** A host whose calls are too slow goes into cooldown, and no other does. */
export const slowCallsCoolDown: LawMaker = {
  title: "too many slow calls start a cooldown",
  make: (plan, occasion) => new SlowCallsCoolDown(plan, occasion),
};

class SlowCallsCoolDown implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #isJudged: boolean;
  readonly #seen = new Map<string, SeenHost>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#isJudged = plan.breakers.slowCalls !== undefined && isExact(plan);
  }

  check(fact: SimFact): string | undefined {
    if (!this.#isJudged) return undefined;
    const missed = this.#missed(fact.atUs);
    if (fact.kind === "head") this.#answered(fact.request, fact.status, fact.atUs);
    else if (fact.kind === "fault" && fact.fault.kind === "operator" && fact.fault.openS === 0)
      this.#forget(fact.fault.process, fact.fault.host);
    else if (fact.kind === "event" && fact.event.event_type === "breaker_cooldown_set") {
      const { host, reason, from_peer, until } = fact.event;
      const seen = this.#of(fact.process, host);
      const isOwn = reason === "slow-calls" && from_peer === undefined;
      // It is emitted again when an operator orders a cooldown that ends earlier.
      const isRepeated = Math.abs(until - seen.untilMs) <= SAME_END_MS;
      const early = isOwn && !isRepeated ? this.#started(seen, host, fact.atUs) : undefined;
      if (isOwn) seen.untilMs = until;
      seen.isCooling = true;
      return early ?? missed;
    } else if (fact.kind === "dispatched") this.#of(fact.request.process, fact.request.breakerUnit).isCooling = false;
    return missed;
  }

  #answered(request: WireRequest, status: number, atUs: number): void {
    if (status >= 400) return;
    const { ms = 0, share = 1, minCalls = 0 } = this.#plan.breakers.slowCalls ?? {};
    const seen = this.#of(request.process, request.breakerUnit);
    seen.calls.push({ atUs, isSlow: atUs - request.dispatchedUs > ms * 1000 });
    const isTooMany = (calls: readonly AnsweredCall[]) =>
      calls.length >= minCalls && calls.filter(({ isSlow }) => isSlow).length >= share * calls.length;
    const windows = this.#windows(seen, atUs);
    if (seen.isCooling && windows.some(isTooMany)) seen.unclearUntilUs = atUs + this.#windowUs;
    else if (atUs >= seen.unclearUntilUs && windows.every(isTooMany)) seen.dueUs = atUs;
  }

  #started(seen: SeenHost, host: string, atUs: number): string | undefined {
    this.#occasion();
    const { share = 1, minCalls = 0 } = this.#plan.breakers.slowCalls ?? {};
    const counts = this.#windows(seen, atUs).map(calls => [calls.length, calls.filter(({ isSlow }) => isSlow).length]);
    seen.calls = [];
    seen.dueUs = undefined;
    if (
      atUs < seen.unclearUntilUs ||
      counts.some(([calls = 0, slow = 0]) => calls >= minCalls && slow >= share * calls)
    )
      return undefined;
    const shown = counts.map(([calls, slow]) => `${slow} of ${calls}`).join(", ");
    return `${host} is in cooldown for slow calls; slow were ${shown || "none"}`;
  }

  /** The calls of every window that may have been counted: each begins with a call, and the longest with the first. */
  #windows({ calls }: SeenHost, atUs: number): readonly (readonly AnsweredCall[])[] {
    const windowUs = this.#windowUs;
    const within = calls.filter(call => call.atUs > atUs - windowUs);
    const certain = within.filter(call => call.atUs > atUs - windowUs * LEAST_SHARE).length;
    return Array.from({ length: within.length - certain + 1 }, (_, index) => within.slice(index));
  }

  get #windowUs(): number {
    return (this.#plan.breakers.rolling?.windowS ?? 0) * 1e6;
  }

  #missed(atUs: number): string | undefined {
    for (const [key, seen] of this.#seen) {
      if (seen.dueUs === undefined || seen.dueUs >= atUs) continue;
      seen.dueUs = undefined;
      this.#occasion();
      return `too many calls were slow (process and host ${key}), and no cooldown began`;
    }
    return undefined;
  }

  #forget(process: number, host: string): void {
    for (const key of this.#seen.keys()) if (commonName(key) === `${process} ${host}`) this.#seen.delete(key);
  }

  #of(process: number, host: string): SeenHost {
    const key = `${process} ${host}`;
    const seen = this.#seen.get(key) ?? {
      ...{ calls: [], isCooling: false, unclearUntilUs: 0, dueUs: undefined, untilMs: Number.NEGATIVE_INFINITY },
    };
    this.#seen.set(key, seen);
    return seen;
  }
}

/**
 * Whether the hub sees the same durations as the network. Computing, the jitter of trial calls and a suspended machine
 * move its clock, a 403 is answered or throttled by its headers, and an operator of another process closes circuits at an unknown moment.
 */
function isExact({ processes, breakers, faults, store }: Plan): boolean {
  return (
    breakers.jitterMs === 0 &&
    processes.every(({ computeUs }) => computeUs === 0) &&
    faults.every(fault => fault.kind !== "suspend" && (fault.kind !== "throttle" || fault.status !== 403)) &&
    (store === undefined || faults.every(({ kind }) => kind !== "operator"))
  );
}
