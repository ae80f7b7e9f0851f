import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import { type EnforcedLimit, LimitCounter, type LimitLedger } from "./limit-counter.ts";

export type AdmissionDecision =
  /** `headers` are the announced limits for the response; `release` frees the concurrency slot. */
  | { readonly kind: "admitted"; readonly headers: Readonly<Record<string, string>>; readonly release: () => void }
  | { readonly kind: "rejected"; readonly reply: SimulatedReply }
  /** A firewall closes the connection without a response. */
  | { readonly kind: "blocked" };

/** Enforces all limits of all hosts exactly: never more than N in any window of length T, by the time it is given. */
export class LimitEnforcer {
  readonly #counters: readonly LimitCounter[];

  constructor(limits: readonly EnforcedLimit[]) {
    this.#counters = limits.map(limit => new LimitCounter(limit));
  }

  /** Charges every limit that applies, or none if one of them is full. */
  decide(request: SimulatedRequest, nowUs: number, factor = 1): AdmissionDecision {
    const counters = this.#counters.filter(({ limit }) => appliesTo(limit, request));
    for (const counter of counters) counter.arrived(nowUs);
    if (counters.some(counter => counter.isBlocking(nowUs))) return { kind: "blocked" };
    const full = counters.find(counter => counter.isFull(request, nowUs, factor));
    if (full !== undefined) return { kind: "rejected", reply: full.reject(request, nowUs, factor) };
    for (const counter of counters) counter.admit(request, nowUs);
    const headers = Object.assign({}, ...counters.map(counter => counter.announce(request, nowUs, factor)));
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      for (const counter of counters) counter.release();
    };
    return { kind: "admitted", headers, release };
  }

  report(): readonly LimitLedger[] {
    return this.#counters.map(counter => counter.report());
  }
}

/** `pattern` is a host, or a host with whole segments of a path: `www.ebi.ac.uk/ols4`. */
export function matchesHostPath(pattern: string, { host, path }: Pick<SimulatedRequest, "host" | "path">): boolean {
  const slash = pattern.indexOf("/");
  if (slash < 0) return pattern === host;
  const prefix = pattern.slice(slash);
  return pattern.slice(0, slash) === host && (path === prefix || path.startsWith(`${prefix}/`));
}

function appliesTo({ at, applies }: EnforcedLimit, request: SimulatedRequest): boolean {
  return at.some(pattern => matchesHostPath(pattern, request)) && (applies === undefined || applies(request));
}
