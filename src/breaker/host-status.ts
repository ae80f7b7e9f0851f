import {
  type BreakerRecord,
  circuitRecordOf,
  EMPTY_BREAKER_RECORD,
  runningCooldown,
} from "../core/breaker/breaker-record.ts";
import type { ClockReading } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import type { CircuitState } from "./breaker-events.ts";
import { type CircuitHolder, failuresOf, stateName, type TimedOrder } from "./circuit-holder.ts";
import type { HostBreaker } from "./host-breaker.ts";

/** The circuit of one role of a host. */
export interface RoleStatus {
  /** The role. */
  readonly role: Role;
  /** State of the circuit of this role; cooldowns of the host do not change it. */
  readonly state: CircuitState;
  /**
   * Consecutive failures while closed, or throttles since the last success if those are more; 0 in the other states. The
   * circuit opens when either number reaches `fail_max`. Throttles of requests that were in flight together count once.
   */
  readonly failures: number;
  /** Trial calls in flight; 0 unless `half_open`. */
  readonly probes: number;
  /** Milliseconds until the circuit becomes half-open, or an operator's order ends; 0 unless `open`. */
  readonly remainingMs: number;
  /** Why the circuit is open or half-open; undefined when it is closed. */
  readonly reason: OpenReason | undefined;
}

/** The breaker state of one host. */
export interface HostStatus {
  /** The canonical name of the host. */
  readonly host: string;
  /** `open` during a cooldown, otherwise the worst state of its roles. */
  readonly state: CircuitState;
  /** Why the host is open or half-open: the reason of the circuit or cooldown that ends last; undefined if closed. */
  readonly reason: OpenReason | undefined;
  /** Milliseconds until the host may be called again in every role; 0 if it may be called now. */
  readonly remainingMs: number;
  /** The same moment in epoch milliseconds; undefined when `remainingMs` is 0. */
  readonly openUntilWallMs: number | undefined;
  /** The part of `remainingMs` that is a cooldown, which applies to every role; 0 if the host is in none. */
  readonly cooldownMs: number;
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
  const cooldown = remainingCooldown(host.cooldownAt(nowUs), nowUs);
  const roles = ROLES.flatMap(role => {
    const circuit = host.circuits[role];
    return circuit === undefined ? [] : [{ role, ...circuitStatusOf(circuit, nowUs) }];
  });
  return statusOf(host.name, roles, cooldown, host.failuresAt(nowUs, windowUs), wallMs);
}

/** The state that a host would have if only the orders of operators had opened its circuits or started cooldowns. */
export function orderedStatusOf(host: HostBreaker, { monotonicUs: nowUs, wallMs }: ClockReading): HostStatus {
  const roles = ROLES.flatMap(role => {
    const circuit = host.circuits[role];
    const [ordered] = openUntil(circuit?.orderAt(nowUs), nowUs);
    return ordered === undefined ? [] : [{ role, ...ordered, failures: 0, probes: 0 }];
  });
  return statusOf(host.name, roles, remainingCooldown(host.orderAt(nowUs), nowUs), 0, wallMs);
}

function statusOf(
  host: string,
  roles: readonly RoleStatus[],
  cooldown: ReturnType<typeof remainingCooldown<OpenReason>>,
  windowFailures: number,
  wallMs: number,
): HostStatus {
  const { state, reason, remainingMs, cooldownMs } = combinedStatus(roles, cooldown);
  const openUntilWallMs = remainingMs > 0 ? wallMs + remainingMs : undefined;
  return { host, state, reason, remainingMs, openUntilWallMs, cooldownMs, windowFailures, roles };
}

/** Whether calls are sent, and why not and for how long. */
type CallStatus = Pick<HostStatus, "state" | "reason" | "remainingMs">;

/**
 * What decides about calls in these roles: the cooldowns of `owners` (hosts and services), the circuits of
 * `circuitOwner`, and operators' orders for the circuits of the others.
 */
export function callStatusOf(
  owners: readonly HostBreaker[],
  circuitOwner: HostBreaker | undefined,
  roles: readonly Role[],
  nowUs: number,
): CallStatus {
  const parts = owners.flatMap(owner => [
    ...openUntil(owner.cooldownAt(nowUs), nowUs),
    ...roles.flatMap((role): readonly CallStatus[] => {
      const circuit = owner.circuits[role];
      if (circuit === undefined) return [];
      return owner === circuitOwner ? [circuitStatusOf(circuit, nowUs)] : openUntil(circuit.orderAt(nowUs), nowUs);
    }),
  ]);
  return combinedStatus(parts, undefined);
}

function openUntil(order: TimedOrder | undefined, nowUs: number): readonly CallStatus[] {
  const remaining = remainingCooldown(order, nowUs);
  return remaining === undefined ? [] : [{ state: "open", ...remaining }];
}

export function circuitStatusOf(holder: CircuitHolder, nowUs: number): Omit<RoleStatus, "role"> {
  const circuit = holder.at(nowUs);
  const order = holder.orderAt(nowUs);
  const untilUs = Math.max(circuit.kind === "open" ? circuit.untilUs : nowUs, order?.untilUs ?? nowUs);
  return {
    state: order === undefined ? stateName(circuit) : "open",
    failures: order === undefined ? failuresOf(circuit) : 0,
    probes: order === undefined && circuit.kind === "half-open" ? circuit.probes.length : 0,
    remainingMs: Math.ceil((untilUs - nowUs) / 1000),
    reason: order?.reason ?? (circuit.kind === "closed" ? undefined : "failures"),
  };
}

/** A circuit in the shared store. */
export interface SharedCircuitStatus {
  /** The role; empty for the circuit of a resolver. */
  readonly name: string;
  readonly state: CircuitState;
  /** Milliseconds until the circuit becomes half-open, or an operator's order ends; 0 unless `open`. */
  readonly remainingMs: number;
  /** Trial calls in flight, over all processes. */
  readonly probes: number;
  /** Why it is open or half-open; undefined when it is closed. */
  readonly reason: string | undefined;
}

/** A host or a resolver in the shared store. */
export interface SharedBreakerStatus {
  readonly kind: "host" | "resolver";
  readonly name: string;
  /** `open` during a cooldown, otherwise the worst state of its circuits. */
  readonly state: CircuitState;
  /** Why it is open or half-open: the reason of the circuit or cooldown that ends last; undefined when it is closed. */
  readonly reason: string | undefined;
  /** Milliseconds until every circuit admits calls again; 0 if all do now. */
  readonly remainingMs: number;
  /** The part of `remainingMs` that is a cooldown, which applies to every role. */
  readonly cooldownMs: number;
  /** Why it is in cooldown; undefined when it is not. */
  readonly cooldownReason: string | undefined;
  readonly circuits: readonly SharedCircuitStatus[];
}

/** @param name `host <name>` or `resolver <name>`, the name of the record in the store. */
export function sharedStatusOf(
  name: string,
  record: BreakerRecord = EMPTY_BREAKER_RECORD,
  nowUs: number,
): SharedBreakerStatus {
  const [kind = "", ...rest] = name.split(" ");
  const circuits = Object.keys(record.circuits).map(circuit => sharedCircuitStatusOf(record, circuit, nowUs));
  return {
    kind: kind as SharedBreakerStatus["kind"],
    name: rest.join(" "),
    ...combinedStatus(circuits, remainingCooldown(runningCooldown(record, nowUs), nowUs)),
    circuits,
  };
}

function sharedCircuitStatusOf(record: BreakerRecord, name: string, nowUs: number): SharedCircuitStatus {
  const { isClosed, untilUs, probes, order } = circuitRecordOf(record, name);
  const isOrdered = order !== undefined && order.untilUs > nowUs;
  const endUs = Math.max(isClosed ? 0 : untilUs, isOrdered ? order.untilUs : 0);
  const leftMs = Math.max(0, Math.ceil((endUs - nowUs) / 1000));
  return {
    name,
    state: leftMs > 0 ? "open" : isClosed ? "closed" : "half_open",
    remainingMs: leftMs,
    probes: probes.filter(({ expiresUs }) => expiresUs > nowUs).length,
    reason: isOrdered ? order.reason : isClosed ? undefined : "failures",
  };
}

/** From the state that blocks nothing to the one that blocks all. */
const BLOCKING: readonly CircuitState[] = ["closed", "half_open", "open"];

/** Orders states: the one that blocks more calls comes first. */
export function worstFirst(one: CircuitState, other: CircuitState): number {
  return BLOCKING.indexOf(other) - BLOCKING.indexOf(one);
}

interface Blocking {
  readonly state: CircuitState;
  readonly remainingMs: number;
}

/** The status that blocks calls more, or longer. */
export function worseStatus<Status extends Blocking>(first: Status, second: Status): Status {
  const order = worstFirst(first.state, second.state);
  return order > 0 || (order === 0 && second.remainingMs > first.remainingMs) ? second : first;
}

/** The worst status among the circuits of a host and its cooldown, if one is running (law B1). */
export function combinedStatus<Reason extends string>(
  circuits: readonly (Blocking & { readonly reason: Reason | undefined })[],
  cooldown: { readonly remainingMs: number; readonly reason: Reason } | undefined,
): {
  readonly state: CircuitState;
  readonly reason: Reason | undefined;
  readonly remainingMs: number;
  readonly cooldownMs: number;
  readonly cooldownReason: Reason | undefined;
} {
  const parts = cooldown === undefined ? circuits : [{ state: "open" as const, ...cooldown }, ...circuits];
  const { state, reason, remainingMs } = parts.reduce(worseStatus, {
    state: "closed",
    reason: undefined,
    remainingMs: 0,
  });
  return { state, reason, remainingMs, cooldownMs: cooldown?.remainingMs ?? 0, cooldownReason: cooldown?.reason };
}

function remainingCooldown<Reason extends string>(
  cooldown: { readonly untilUs: number; readonly reason: Reason } | undefined,
  nowUs: number,
): { readonly remainingMs: number; readonly reason: Reason } | undefined {
  return cooldown && { remainingMs: Math.ceil((cooldown.untilUs - nowUs) / 1000), reason: cooldown.reason };
}
