import type { LimitLedger } from "./limit-counter.ts";

/** What one host has seen. Times are milliseconds since the internet started, by its own clock. */
export interface HostLedger {
  readonly requests: number;
  /** Answered by the service, or as the script would have it. */
  readonly served: number;
  /** Refused for want of room under a limit: what a polite client never sees. */
  readonly rejected: number;
  /** Cut off by a firewall, after refusals that were not heeded. */
  readonly blocked: number;
  /** By status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly firstMs: number;
  readonly lastMs: number;
  /** When each request came, those that were rejected too; the first hundred thousand of them. */
  readonly arrivalsMs: readonly number[];
  /** The limits that apply somewhere on this host; those that span hosts count them all. */
  readonly limits: readonly LimitLedger[];
}

export interface Ledger {
  readonly requests: number;
  readonly served: number;
  readonly rejected: number;
  readonly blocked: number;
  /** Faults of the simulation itself, each a sentence. None is expected. */
  readonly faults: readonly string[];
  /** Those that were called. */
  readonly hosts: Readonly<Record<string, HostLedger>>;
  /** Those that were used. */
  readonly limits: readonly LimitLedger[];
}

const ARRIVALS_MAX = 100_000;
const FAULTS_MAX = 20;

interface HostCounts {
  requests: number;
  served: number;
  rejected: number;
  blocked: number;
  readonly statuses: Record<string, number>;
  lastMs: number;
  readonly arrivalsMs: number[];
}

/** Keeps the books of all hosts while they are called. */
export class LedgerRecorder {
  readonly #counts = new Map<string, HostCounts>();
  readonly #faults: string[] = [];

  arrived(host: string, nowMs: number): void {
    const hostCounts = this.#countsOf(host);
    hostCounts.requests += 1;
    hostCounts.lastMs = nowMs;
    if (hostCounts.arrivalsMs.length < ARRIVALS_MAX) hostCounts.arrivalsMs.push(nowMs);
  }

  ended(host: string, how: "served" | "rejected" | "blocked", status?: number): void {
    const hostCounts = this.#countsOf(host);
    hostCounts[how] += 1;
    if (status !== undefined) hostCounts.statuses[status] = (hostCounts.statuses[status] ?? 0) + 1;
  }

  fault(sentence: string): void {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push(sentence);
  }

  report(limits: readonly LimitLedger[]): Ledger {
    const used = limits.filter(({ requests }) => requests > 0);
    const counts = [...this.#counts.values()];
    const sum = (count: (hostCounts: HostCounts) => number) =>
      counts.reduce((total, hostCounts) => total + count(hostCounts), 0);
    return {
      requests: sum(({ requests }) => requests),
      served: sum(({ served }) => served),
      rejected: sum(({ rejected }) => rejected),
      blocked: sum(({ blocked }) => blocked),
      faults: [...this.#faults],
      hosts: Object.fromEntries(
        [...this.#counts].map(([host, hostCounts]) => [
          host,
          { ...hostCounts, firstMs: hostCounts.arrivalsMs[0] ?? 0, limits: on(host, used) },
        ]),
      ),
      limits: used,
    };
  }

  #countsOf(host: string): HostCounts {
    const known = this.#counts.get(host);
    if (known !== undefined) return known;
    const hostCounts = { requests: 0, served: 0, rejected: 0, blocked: 0, statuses: {}, lastMs: 0, arrivalsMs: [] };
    this.#counts.set(host, hostCounts);
    return hostCounts;
  }
}

function on(host: string, limits: readonly LimitLedger[]): readonly LimitLedger[] {
  return limits.filter(({ at }) => at.some(place => place === host || place.startsWith(`${host}/`)));
}
