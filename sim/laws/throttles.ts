import { isExpiredUnwritten, type SimFact, type WireRequest } from "../facts.ts";
import type { LawMaker } from "./law.ts";

/** The answers of one circuit since its last change of state. */
interface SeenAnswers {
  /** Throttles, where those of requests that were in flight together are one. */
  throttles: number;
  lastThrottleUs: number;
  /** Other failures of requests that reached the host. */
  reached: number;
  /** Failures of requests that never reached the host, by process. */
  unreached: Map<number, number>;
}

/**
 * B10: a burst of throttles counts once, so that throttles open a circuit only after `fail_max` separate bursts. The
 * processes that share a store count together.
 */
export const burstsCountOnce: LawMaker = {
  title: "throttles of one burst count once",
  make: (plan, occasion) => {
    const seen = new Map<string, SeenAnswers>();
    const connecting = new Set<WireRequest>();
    /** When the state of a circuit last changed in each process, and when it was last opened for enough answers. */
    const changes = new Map<string, number>();
    const opened = new Map<string, number>();
    const keyOf = (process: number, host: string, role: string) =>
      plan.store === undefined ? `${process} ${host} ${role}` : `${host} ${role}`;
    const of = (process: number, host: string, role: string) => {
      const key = keyOf(process, host, role);
      const none = { throttles: 0, lastThrottleUs: Number.NEGATIVE_INFINITY, reached: 0, unreached: new Map() };
      const answers: SeenAnswers = seen.get(key) ?? none;
      seen.set(key, answers);
      return answers;
    };
    const count = (request: WireRequest, isThrottle: boolean, atUs: number) => {
      const answers = of(request.process, request.breakerUnit, request.role);
      const { unreached } = answers;
      if (!isThrottle && request.writtenUs === undefined)
        unreached.set(request.process, (unreached.get(request.process) ?? 0) + 1);
      else if (!isThrottle) answers.reached += 1;
      else if (request.dispatchedUs > answers.lastThrottleUs) {
        answers.throttles += 1;
        answers.lastThrottleUs = atUs;
      }
    };
    return {
      check: (fact: SimFact) => {
        if (fact.kind === "dispatched") connecting.add(fact.request);
        else if (fact.kind === "written") connecting.delete(fact.request);
        else if (fact.kind === "head") {
          const { status, retryAfterMs = 0, request, atUs } = fact;
          if (status >= 400) count(request, status === 429 || retryAfterMs > 0, atUs);
        } else if (fact.kind === "ended") {
          connecting.delete(fact.request);
          if (fact.how !== "complete") count(fact.request, false, fact.atUs);
        } else if (fact.kind === "event" && fact.event.event_type === "breaker_state_change") {
          const { host, role, old, new: state, from_peer } = fact.event;
          if (host === undefined || role === undefined) return undefined;
          for (const request of connecting) {
            if (isExpiredUnwritten(request, fact.atUs, plan.calls)) count(request, false, fact.atUs);
          }
          const key = `${host} ${role}`;
          const { throttles, reached, unreached } = of(fact.process, host, role);
          const neverReached = [...unreached.values()].reduce((sum, failures) => sum + failures, 0);
          const failures = reached + neverReached;
          const changedUs = changes.get(`${fact.process} ${key}`) ?? Number.NEGATIVE_INFINITY;
          changes.set(`${fact.process} ${key}`, fact.atUs);
          const { failMax } = plan.breakers;
          const isEnough = throttles >= failMax || failures >= failMax;
          const isOpening = from_peer === undefined && old === "closed" && state === "open";
          // Failures of one process that never reached the host open its own circuit alone: they still count for all.
          const sharedFailures = reached + (unreached.size > 1 ? neverReached : 0);
          const isOpeningForAll = isOpening && Math.max(throttles, sharedFailures) >= failMax;
          // The answers are used up. A success ends the count too; a change applied from a peer does not.
          if (plan.store === undefined || isOpeningForAll || (state === "closed" && from_peer === undefined))
            seen.delete(keyOf(fact.process, host, role));
          if (!isOpening) return undefined;
          occasion();
          if (isEnough) {
            opened.set(key, fact.atUs);
            return undefined;
          }
          // Several processes may open a shared circuit, one after the other and each once, for the same answers.
          if (plan.store !== undefined && changedUs < (opened.get(key) ?? Number.NEGATIVE_INFINITY)) return undefined;
          return `${host} (${role}) opened after ${throttles} bursts of throttles and ${failures} failures; fail_max ${failMax}`;
        }
        return undefined;
      },
    };
  },
};
