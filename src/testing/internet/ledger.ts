import type { LimitLedger } from "./limit-counter.ts";

/** The counts of one host. Times are milliseconds since the internet started, by its own clock. */
export interface HostLedger {
  /** All requests, rejected and blocked ones included. */
  readonly requests: number;
  /** Requests that the service or the script answered. */
  readonly served: number;
  /** Requests refused by a limit. A polite client has none. */
  readonly rejected: number;
  /** Requests whose connection a firewall closed, because the client had ignored refusals for too long. */
  readonly blocked: number;
  /** How many responses were sent, by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** When the first request arrived. */
  readonly firstMs: number;
  /** When the last request arrived. */
  readonly lastMs: number;
  /** When each request arrived, rejected ones included; at most the first 100,000. */
  readonly arrivalsMs: readonly number[];
  /** The used limits that apply to this host or a path of it. A limit of several hosts counts them all. */
  readonly limits: readonly LimitLedger[];
}

/** The counts of all hosts of the simulated internet. */
export interface Ledger {
  /** All requests, rejected and blocked ones included. */
  readonly requests: number;
  /** Requests that a service or the script answered. */
  readonly served: number;
  /** Requests refused by a limit. A polite client has none. */
  readonly rejected: number;
  /** Requests whose connection a firewall closed. */
  readonly blocked: number;
  /** Errors of the simulation itself, at most 20. Always empty unless the simulation has a bug. */
  readonly faults: readonly string[];
  /** The hosts that were called, by name. */
  readonly hosts: Readonly<Record<string, HostLedger>>;
  /** The limits that were used. */
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

/** Counts requests and responses of all hosts. */
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

  fault(message: string): void {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push(message);
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
          { ...hostCounts, firstMs: hostCounts.arrivalsMs[0] ?? 0, limits: limitsOf(host, used) },
        ]),
      ),
      limits: used,
    };
  }

  #countsOf(host: string): HostCounts {
    const existing = this.#counts.get(host);
    if (existing !== undefined) return existing;
    const hostCounts = { requests: 0, served: 0, rejected: 0, blocked: 0, statuses: {}, lastMs: 0, arrivalsMs: [] };
    this.#counts.set(host, hostCounts);
    return hostCounts;
  }
}

function limitsOf(host: string, limits: readonly LimitLedger[]): readonly LimitLedger[] {
  return limits.filter(({ at }) => at.some(pattern => pattern === host || pattern.startsWith(`${host}/`)));
}
