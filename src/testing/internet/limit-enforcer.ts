import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import { type EnforcedLimit, LimitCounter, type LimitLedger } from "./limit-counter.ts";

export type AdmissionDecision =
  /** `headers` is what the service announces with every answer; `leave` says that it is done with the request. */
  | { readonly kind: "admitted"; readonly headers: Readonly<Record<string, string>>; readonly release: () => void }
  | { readonly kind: "rejected"; readonly reply: SimulatedReply }
  /** By a firewall: the connection is cut without a word. */
  | { readonly kind: "blocked" };

/** Enforces all limits of all hosts exactly: never more than N in any window of T, by the clock it is shown. */
export class LimitEnforcer {
  readonly #counts: readonly LimitCounter[];

  constructor(limits: readonly EnforcedLimit[]) {
    this.#counts = limits.map(limit => new LimitCounter(limit));
  }

  /** All limits that apply charge for the request, or, where one of them is full, none does. */
  decide(visit: SimulatedRequest, nowUs: number, factor = 1): AdmissionDecision {
    const counts = this.#counts.filter(({ limit }) => appliesTo(limit, visit));
    for (const count of counts) count.arrived(nowUs);
    if (counts.some(count => count.isBlocking(nowUs))) return { kind: "blocked" };
    const full = counts.find(count => count.isFull(visit, nowUs, factor));
    if (full !== undefined) return { kind: "rejected", reply: full.reject(visit, nowUs, factor) };
    for (const count of counts) count.admit(visit, nowUs);
    const headers = Object.assign({}, ...counts.map(count => count.announce(visit, nowUs, factor)));
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      for (const count of counts) count.release();
    };
    return { kind: "admitted", headers, release };
  }

  report(): readonly LimitLedger[] {
    return this.#counts.map(count => count.report());
  }
}

/** Whether a limit, or a part of a host, is meant: `www.ebi.ac.uk/ols4`. */
export function isAt(place: string, { host, path }: Pick<SimulatedRequest, "host" | "path">): boolean {
  const slash = place.indexOf("/");
  if (slash < 0) return place === host;
  const prefix = place.slice(slash);
  return place.slice(0, slash) === host && (path === prefix || path.startsWith(`${prefix}/`));
}

function appliesTo({ at, applies }: EnforcedLimit, visit: SimulatedRequest): boolean {
  return at.some(place => isAt(place, visit)) && (applies === undefined || applies(visit));
}
