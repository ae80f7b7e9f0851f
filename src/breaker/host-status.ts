import type { Circuit } from "../core/breaker/circuit.ts";
import type { ClockReading } from "../core/breaker/deadline.ts";
import type { OpenReason } from "../errors.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { type CircuitState, stateName } from "./breaker-events.ts";
import type { HostBreaker } from "./host-breaker.ts";

/** The circuit of one role of a host. */
export interface RoleStatus {
  /** The role. */
  readonly role: Role;
  /** State of the circuit of this role; cooldowns of the host do not change it. */
  readonly state: CircuitState;
  /** Consecutive failures while closed; 0 in the other states. */
  readonly failures: number;
  /** Trial calls in flight; 0 unless `half_open`. */
  readonly probes: number;
  /** Milliseconds until the circuit becomes half-open; 0 unless `open`. */
  readonly remainingMs: number;
}

/** The breaker state of one host. */
export interface HostStatus {
  /** The canonical name of the host. */
  readonly host: string;
  /** `open` during a cooldown, otherwise the worst state of its roles. */
  readonly state: CircuitState;
  /** Why the host is open or half-open; undefined when it is closed. */
  readonly reason: OpenReason | undefined;
  /** Milliseconds until the host may be called again in every role; 0 for now. */
  readonly remainingMs: number;
  /** The same moment in epoch milliseconds; undefined when `remainingMs` is 0. */
  readonly openUntilWallMs: number | undefined;
  /** Failures in the rolling window, over all roles. */
  readonly windowFailures: number;
  /** The circuit of each role that was used. */
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
