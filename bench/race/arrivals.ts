import type { Interval } from "./bound.ts";
import type { RaceLimits, RaceRole, RaceWindow } from "./limits.ts";

/** The counts of a server. */
export interface ServerReport {
  readonly arrivals: number;
  /** Requests answered with 429. */
  readonly rejections: number;
  /** Requests that arrived during the outage. */
  readonly duringOutage: number;
  /** From the end of the outage to the first success. */
  readonly recoveryMs?: number;
  /** The end of the first Retry-After of the outage: whole seconds, so it may be after the end of the outage. */
  readonly retryAfterUntilMs?: number;
  /** The most requests in any interval of the window that was exceeded most; rejected ones included. */
  readonly busiest: { readonly count: number; readonly limit: number; readonly windowMs: number };
}

interface RequestArrival {
  readonly atMs: number;
  readonly role: RaceRole;
  readonly status: number;
}

/** All requests that a server has seen, in their order. */
export class ArrivalLog {
  readonly #arrivals: RequestArrival[] = [];

  add(arrival: RequestArrival): void {
    this.#arrivals.push(arrival);
  }

  report(limits: RaceLimits, outage?: Interval): Omit<ServerReport, "retryAfterUntilMs"> {
    const recovered = outage && this.#arrivals.find(({ atMs, status }) => atMs >= outage.toMs && status === 200)?.atMs;
    return {
      arrivals: this.#arrivals.length,
      rejections: this.#arrivals.filter(({ status }) => status === 429).length,
      duringOutage: this.#arrivals.filter(({ status }) => status === 503).length,
      ...(outage !== undefined && recovered !== undefined && { recoveryMs: recovered - outage.toMs }),
      busiest: this.#busiest(limits),
    };
  }

  #busiest(limits: RaceLimits): ServerReport["busiest"] {
    const scopes: readonly (readonly [readonly RaceWindow[], readonly RequestArrival[]])[] = [
      ...(["metadata", "artifact"] as const).map(
        role => [limits[role] ?? [], this.#arrivals.filter(arrival => arrival.role === role)] as const,
      ),
      [limits.total ?? [], this.#arrivals],
    ];
    const counts = scopes.flatMap(([windows, arrivals]) =>
      windows.map(window => ({ ...window, count: most(arrivals, window.windowMs) })),
    );
    const [first = { count: 0, limit: 0, windowMs: 0 }, ...others] = counts;
    return others.reduce((worst, one) => (one.count / one.limit > worst.count / worst.limit ? one : worst), first);
  }
}

/** The arrivals are sorted, so one pass is enough. */
function most(arrivals: readonly RequestArrival[], windowMs: number): number {
  let from = 0;
  let busiest = 0;
  for (const [index, { atMs }] of arrivals.entries()) {
    while ((arrivals[from]?.atMs ?? atMs) <= atMs - windowMs) from += 1;
    busiest = Math.max(busiest, index - from + 1);
  }
  return busiest;
}
