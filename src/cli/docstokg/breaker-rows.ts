import type { CircuitState } from "../../breaker/breaker-events.ts";
import type { RunningProcess, SharedBreakerStatus, SharedCircuitStatus } from "../../http/operator.ts";

/** One host, or resolver, as `breaker show` tells of it. */
export interface BreakerRow {
  readonly kind: "host" | "resolver";
  readonly name: string;
  readonly state: CircuitState;
  readonly reason: string | null;
  /** ISO 8601, in UTC. */
  readonly openUntil: string | null;
  readonly remainingMs: number;
  /** The most that any process has counted in its rolling window. Each counts for itself. */
  readonly windowFailures: number;
  /** Trial calls under way, of all processes together. */
  readonly probes: number;
  /** `all` where a cooldown shuts every role; else those that are not closed. */
  readonly roles: readonly string[];
  readonly circuits: readonly SharedCircuitStatus[];
}

const WORST_FIRST: readonly CircuitState[] = ["open", "half_open", "closed"];

/** `windowUs`: how long a failure counts. A process that said nothing for so long has none left. */
export function breakerRows(
  reports: readonly SharedBreakerStatus[],
  processes: readonly RunningProcess[],
  { wallMs, windowUs }: { readonly wallMs: number; readonly windowUs: number },
): readonly BreakerRow[] {
  const failures = windowFailures(processes.filter(({ writtenMs }) => wallMs - writtenMs < windowUs / 1000));
  const known = new Set(reports.filter(({ kind }) => kind === "host").map(({ name }) => name));
  // What processes count has not opened anything yet, and is in no shared note.
  const failingHosts = [...failures.keys()].filter(name => !known.has(name)).map(closedReport);
  return [...reports, ...failingHosts]
    .map(report => rowOf(report, report.kind === "host" ? (failures.get(report.name) ?? 0) : 0, wallMs))
    .sort((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state) || (a.name < b.name ? -1 : 1));
}

function rowOf(report: SharedBreakerStatus, failures: number, wallMs: number): BreakerRow {
  const { kind, name, state, reason = null, remainingMs, cooldownMs, circuits } = report;
  const open = circuits.filter(circuit => circuit.state !== "closed");
  return {
    kind,
    name,
    state,
    reason,
    openUntil: remainingMs > 0 ? new Date(wallMs + remainingMs).toISOString() : null,
    remainingMs,
    windowFailures: failures,
    probes: circuits.reduce((sum, { probes }) => sum + probes, 0),
    roles: cooldownMs > 0 ? ["all"] : open.map(circuit => circuit.name).filter(role => role !== ""),
    circuits,
  };
}

function closedReport(name: string): SharedBreakerStatus {
  return { kind: "host", name, state: "closed", reason: undefined, remainingMs: 0, cooldownMs: 0, circuits: [] };
}

function windowFailures(processes: readonly RunningProcess[]): ReadonlyMap<string, number> {
  const most = new Map<string, number>();
  for (const { snapshot } of processes) {
    for (const { host, windowFailures: count } of snapshot.hosts)
      if (count > 0) most.set(host, Math.max(most.get(host) ?? 0, count));
  }
  return most;
}
