import type { CircuitState } from "../breaker/breaker-events.ts";
import { type SharedBreakerStatus, type SharedCircuitStatus, worstFirst } from "../breaker/host-status.ts";
import { RESOLVER_CIRCUIT } from "../core/breaker/breaker-record.ts";
import type { RunningProcess } from "./observer.ts";

/** One host or resolver in the output of `breaker show`. */
export interface SharedBreakerRow {
  readonly kind: "host" | "resolver";
  readonly name: string;
  readonly state: CircuitState;
  readonly reason: string | null;
  /** ISO 8601 in UTC; null if it is not open. */
  readonly openUntil: string | null;
  readonly remainingMs: number;
  /** The part of `remainingMs` that is a cooldown, which refuses every role. */
  readonly cooldownMs: number;
  /** The highest count of any process in its rolling window: each process counts its own failures. */
  readonly windowFailures: number;
  /** Trial calls in flight, in all processes. */
  readonly probes: number;
  /** `all` if a cooldown applies, which refuses every role; otherwise the roles whose circuit is not closed. */
  readonly roles: readonly string[];
  readonly circuits: readonly SharedCircuitStatus[];
}

/** `windowUs` is the length of the rolling window: a status that is older than that has no failures left to count. */
export function breakerRows(
  statuses: readonly SharedBreakerStatus[],
  processes: readonly RunningProcess[],
  { wallMs, windowUs }: { readonly wallMs: number; readonly windowUs: number },
): readonly SharedBreakerRow[] {
  const failures = windowFailures(processes.filter(({ writtenMs }) => wallMs - writtenMs < windowUs / 1000));
  const listedHosts = new Set(statuses.filter(({ kind }) => kind === "host").map(({ name }) => name));
  // Failures that have not opened a circuit yet are in the status of a process, but not in a shared record.
  const failingHosts = [...failures.keys()].filter(name => !listedHosts.has(name)).map(closedStatus);
  return [...statuses, ...failingHosts]
    .map(status => rowOf(status, status.kind === "host" ? (failures.get(status.name) ?? 0) : 0, wallMs))
    .sort((a, b) => worstFirst(a.state, b.state) || (a.name < b.name ? -1 : 1));
}

function rowOf(status: SharedBreakerStatus, failures: number, wallMs: number): SharedBreakerRow {
  const { kind, name, state, reason = null, remainingMs, cooldownMs, circuits } = status;
  const notClosed = circuits.filter(circuit => circuit.state !== "closed");
  return {
    kind,
    name,
    state,
    reason,
    openUntil: remainingMs > 0 ? new Date(wallMs + remainingMs).toISOString() : null,
    remainingMs,
    cooldownMs,
    windowFailures: failures,
    probes: circuits.reduce((sum, { probes }) => sum + probes, 0),
    roles: cooldownMs > 0 ? ["all"] : notClosed.map(circuit => circuit.name).filter(role => role !== RESOLVER_CIRCUIT),
    circuits,
  };
}

function closedStatus(name: string): SharedBreakerStatus {
  const noCooldown = { cooldownMs: 0, cooldownReason: undefined };
  return { kind: "host", name, state: "closed", reason: undefined, remainingMs: 0, ...noCooldown, circuits: [] };
}

function windowFailures(processes: readonly RunningProcess[]): ReadonlyMap<string, number> {
  const highest = new Map<string, number>();
  for (const { snapshot } of processes) {
    for (const { host, windowFailures: count } of snapshot.hosts)
      if (count > 0) highest.set(host, Math.max(highest.get(host) ?? 0, count));
  }
  return highest;
}
