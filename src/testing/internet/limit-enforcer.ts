import type { Reply, Visit } from "./exchange.ts";
import { type EnforcedLimit, LimitCount, type LimitLedger } from "./limit-counter.ts";

export type Verdict =
  /** `headers` is what the service announces with every answer; `leave` says that it is done with the request. */
  | { readonly kind: "admitted"; readonly headers: Readonly<Record<string, string>>; readonly leave: () => void }
  | { readonly kind: "rejected"; readonly reply: Reply }
  /** By a firewall: the connection is cut without a word. */
  | { readonly kind: "blocked" };

/** Enforces all limits of all hosts exactly: never more than N in any window of T, by the clock it is shown. */
export class Doorman {
  readonly #counts: readonly LimitCount[];

  constructor(limits: readonly EnforcedLimit[]) {
    this.#counts = limits.map(limit => new LimitCount(limit));
  }

  /** All limits that apply charge for the request, or, where one of them is full, none does. */
  arrive(visit: Visit, nowUs: number, factor = 1): Verdict {
    const counts = this.#counts.filter(({ limit }) => appliesTo(limit, visit));
    for (const count of counts) count.arrived(nowUs);
    if (counts.some(count => count.isBlocking(nowUs))) return { kind: "blocked" };
    const full = counts.find(count => count.isFull(visit, nowUs, factor));
    if (full !== undefined) return { kind: "rejected", reply: full.reject(visit, nowUs, factor) };
    for (const count of counts) count.admit(visit, nowUs);
    const headers = Object.assign({}, ...counts.map(count => count.announce(visit, nowUs, factor)));
    let isInside = true;
    const leave = () => {
      if (!isInside) return;
      isInside = false;
      for (const count of counts) count.leave();
    };
    return { kind: "admitted", headers, leave };
  }

  report(): readonly LimitLedger[] {
    return this.#counts.map(count => count.report());
  }
}

/** Whether a limit, or a part of a host, is meant: `www.ebi.ac.uk/ols4`. */
export function isAt(place: string, { host, path }: Pick<Visit, "host" | "path">): boolean {
  const slash = place.indexOf("/");
  if (slash < 0) return place === host;
  const prefix = place.slice(slash);
  return place.slice(0, slash) === host && (path === prefix || path.startsWith(`${prefix}/`));
}

function appliesTo({ at, applies }: EnforcedLimit, visit: Visit): boolean {
  return at.some(place => isAt(place, visit)) && (applies === undefined || applies(visit));
}
