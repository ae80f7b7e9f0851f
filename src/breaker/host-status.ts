import type { Circuit } from "../core/breaker/circuit.ts";
import type { ClockReading } from "../core/breaker/deadline.ts";
import type { OpenReason } from "../errors.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { type CircuitState, stateName } from "./breaker-events.ts";
import type { HostBreaker } from "./host-breaker.ts";

export interface RoleStatus {
  readonly role: Role;
  readonly state: CircuitState;
  readonly failures: number;
  readonly probes: number;
  readonly remainingMs: number;
}

/** A host as it stands. Its state is its worst role's, and open while a cooldown runs. */
export interface HostStatus {
  readonly host: string;
  readonly state: CircuitState;
  readonly reason: OpenReason | undefined;
  /** Milliseconds until the host may be called again, as far as anybody knows; 0 for now. */
  readonly remainingMs: number;
  /** Epoch milliseconds; undefined when nothing is open. */
  readonly openUntilWallMs: number | undefined;
  /** Failures in the rolling window. */
  readonly windowFailures: number;
  readonly roles: readonly RoleStatus[];
}

export function hostStatusOf(
  host: HostBreaker,
  { monotonicUs: nowUs, wallMs }: ClockReading,
  windowUs: number,
): HostStatus {
  const cooldown = host.cooldownAt(nowUs);
  const roles = ROLES.flatMap(role => {
    const circuit = host.circuits[role]?.at(nowUs);
    return circuit === undefined ? [] : [roleStatus(role, circuit, nowUs)];
  });
  const worst = roles.find(({ state }) => state === "open") ?? roles.find(({ state }) => state === "half_open");
  const cooledMs = cooldown === undefined ? 0 : Math.ceil((cooldown.untilUs - nowUs) / 1000);
  const remainingMs = Math.max(cooledMs, ...roles.map(role => role.remainingMs));
  return {
    host: host.name,
    state: cooldown === undefined ? (worst?.state ?? "closed") : "open",
    reason: cooldown?.reason ?? (worst === undefined ? undefined : "failures"),
    remainingMs,
    openUntilWallMs: remainingMs > 0 ? wallMs + remainingMs : undefined,
    windowFailures: host.failuresAt(nowUs, windowUs),
    roles,
  };
}

function roleStatus(role: Role, circuit: Circuit, nowUs: number): RoleStatus {
  return {
    role,
    state: stateName(circuit),
    failures: circuit.kind === "closed" ? circuit.failures : 0,
    probes: circuit.kind === "half-open" ? circuit.probes.length : 0,
    remainingMs: circuit.kind === "open" ? Math.ceil((circuit.untilUs - nowUs) / 1000) : 0,
  };
}
