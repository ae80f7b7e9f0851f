import { estimatedAdmissionUs, estimatedEndUs, firstLeaseEndUs, nextAdmissionUs } from "../core/breaker/circuit.ts";
import {
  BreakerOpenError,
  type Constraint,
  HOLD,
  type OpenReason,
  openCircuitLimit,
  PROBE_IN_FLIGHT,
  RAMP_UP,
} from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { Blocker, ProbePermissions } from "./breaker-change.ts";
import type { CircuitState } from "./breaker-events.ts";
import { allOwners, type CallOwners, distinctOwners, rampUpsOf } from "./breaker-table.ts";
import { type CircuitHolder, stateName } from "./circuit-holder.ts";
import { type Cooldown, reasonText } from "./cooldowns.ts";
import type { HostBreaker } from "./host-breaker.ts";
import { RampUp } from "./ramp-up.ts";

/**
 * A call that is not permitted: why, and for how long. A value and not an Error, because a stack trace is expensive.
 */
export interface BreakerDenial {
  /** Always false; distinguishes a denial from a `BreakerPermit`. */
  readonly isAllowed: false;
  /** The owner of the circuit or cooldown: the canonical name of the host, or `service <name>`. */
  readonly host: string;
  /** The role of the call. */
  readonly role: Role;
  /**
   * Why the circuit is open: `failures`, `retry-after`, `rolling-window`, `slow-calls`, or `cli-open:<reason>` for an
   * operator.
   */
  readonly reason: OpenReason;
  /** `open`, also for a cooldown; `half_open` when every trial call is in flight. */
  readonly state: CircuitState;
  /**
   * Milliseconds from the denial to the end of the cooldown or of the open time. For `half_open` it is an estimate: the
   * circuit admits calls when the trial call in flight has ended. That call is expected to take as long again as it has
   * taken so far, and at least a second.
   */
  readonly retryAfterMs: number;
  /** The circuit that decided, as errors and tables name it. */
  readonly constraint: Constraint;
  /** The same denial as an error, ready to be thrown. */
  error(): BreakerOpenError;
}

interface DenialDetails {
  readonly host: string;
  readonly role: Role;
  readonly reason: OpenReason;
  readonly state: CircuitState;
  readonly untilUs: number;
  readonly estimatedUs?: number;
  readonly blocker: Blocker;
  readonly isProbePending?: boolean;
  readonly isHold?: boolean;
  readonly lastFailure?: string | undefined;
}

/** A denial with what the gate needs to wait for its end. */
export class Denial implements BreakerDenial {
  readonly host: string;
  readonly role: Role;
  readonly reason: OpenReason;
  readonly state: CircuitState;
  /** End of the cooldown or of the open time; for a half-open circuit, end of the first lease of a probe. */
  readonly untilUs: number;
  readonly #estimatedUs: number;
  /** The cooldown or the circuit that must end first. */
  readonly blocker: Blocker;
  /** True while the peers are asked whether this process may probe. The denial is not final before their reply. */
  readonly isProbePending: boolean;
  /** An operator holds the calls: they wait or are refused as by a rate limit. */
  readonly isHold: boolean;
  readonly #lastFailure: string | undefined;
  readonly #nowUs: number;

  constructor(details: DenialDetails, nowUs: number) {
    const { host, role, reason, state, untilUs, estimatedUs = untilUs, blocker } = details;
    this.host = host;
    this.role = role;
    this.reason = reason;
    this.state = state;
    this.untilUs = untilUs;
    this.#estimatedUs = estimatedUs;
    this.blocker = blocker;
    this.isProbePending = details.isProbePending ?? false;
    this.isHold = details.isHold ?? false;
    this.#lastFailure = details.lastFailure;
    this.#nowUs = nowUs;
  }

  get isAllowed(): false {
    return false;
  }

  /** Traffic resumes after a cooldown: the call waits for the answer of another one, as for a concurrency slot. */
  get isRampUp(): boolean {
    return this.blocker instanceof RampUp;
  }

  get retryAfterMs(): number {
    return Math.ceil((this.#estimatedUs - this.#nowUs) / 1000);
  }

  get constraint(): Constraint {
    if (this.isHold) return { kind: "cooldown", owner: this.host, limit: `${HOLD} (${reasonText(this.reason)})` };
    const limit =
      this.blocker instanceof RampUp
        ? `${RAMP_UP} (${this.blocker.limit} in flight)`
        : this.state === "half_open"
          ? PROBE_IN_FLIGHT
          : openCircuitLimit(this.reason);
    const { resolver } = "policy" in this.blocker ? this.blocker.name : {};
    return { kind: "breaker", owner: resolver === undefined ? this.host : `resolver ${resolver}`, limit };
  }

  error(): BreakerOpenError {
    const { host, role, reason, constraint, retryAfterMs, blocker } = this;
    const failMax = "policy" in blocker ? blocker.policy.failMax : undefined;
    const isTrialRunning = this.state === "half_open";
    const circuit = {
      reason,
      failMax,
      isTrialRunning,
      cooldownRemainingMs: retryAfterMs,
      lastFailure: this.#lastFailure,
    };
    return new BreakerOpenError({ host, role, constraint, ...circuit });
  }
}

/** False if no cooldown or hold of the call's owners was ever set. Then none of them needs to be checked. */
export function mayHaveCooldown({ circuit, cooldown, host, common, former }: CallOwners): boolean {
  return (
    former.length > 0 ||
    circuit.mayHaveCooldown ||
    cooldown.mayHaveCooldown ||
    host?.mayHaveCooldown === true ||
    common.some(owner => owner.mayHaveCooldown)
  );
}

/** The cooldown or circuit of this process that denies a call. If several do, the one that ends last. */
export function denialOf(
  owners: CallOwners,
  role: Role,
  circuit: CircuitHolder | undefined,
  resolver: CircuitHolder | undefined,
  nowUs: number,
): Denial | undefined {
  // Nearly every call ends here, and nothing is allocated for it.
  if (
    !mayHaveCooldown(owners) &&
    circuit?.admits(nowUs) !== false &&
    (resolver === undefined || resolver.admits(nowUs))
  )
    return undefined;
  return lastDenial(owners, role, circuit, resolver, nowUs);
}

function lastDenial(
  owners: CallOwners,
  role: Role,
  circuit: CircuitHolder | undefined,
  resolver: CircuitHolder | undefined,
  nowUs: number,
): Denial | undefined {
  const circuitAdmits = circuit === undefined || circuit.admits(nowUs);
  const resolverAdmits = resolver === undefined || resolver.admits(nowUs);
  // Most denials end here.
  if (resolverAdmits && circuit !== undefined && !mayHaveCooldown(owners))
    return lastOf(circuitDenials(circuit, owners, role, nowUs));
  const found: Denial[] = [];
  const addCooldown = (blocker: HostBreaker, cooldown: Cooldown | undefined) => {
    if (cooldown === undefined) return;
    const { reason, untilUs, lastFailure } = cooldown;
    found.push(new Denial({ host: blocker.name, role, reason, state: "open", untilUs, blocker, lastFailure }, nowUs));
  };
  for (const owner of distinctOwners(owners)) addCooldown(owner, owner.cooldownAt(nowUs));
  for (const owner of owners.common) addCooldown(owner, owner.orderAt(nowUs));
  for (const { owner, blocker, order } of roleOrdersOf(owners, role, nowUs))
    found.push(new Denial({ host: owner.name, role, ...order, state: "open", blocker }, nowUs));
  const held = holdDenialOf(owners, role, nowUs);
  if (held !== undefined) found.push(held);
  for (const blocker of found.length === 0 ? rampUpsOf(owners, role) : []) {
    if (blocker.admits(nowUs)) continue;
    const calls = blocker.calls(nowUs);
    const times = { untilUs: firstLeaseEndUs(calls), estimatedUs: estimatedEndUs(calls, nowUs) };
    const { reason, name } = blocker;
    found.push(new Denial({ host: name.host, role, reason, state: "half_open", ...times, blocker }, nowUs));
  }
  if (circuit !== undefined && !circuitAdmits) found.push(...circuitDenials(circuit, owners, role, nowUs));
  if (resolver !== undefined && !resolverAdmits) found.push(...circuitDenials(resolver, owners, role, nowUs));
  return lastOf(found);
}

/** The denials of a circuit that does not admit a call: by the order of an operator, by its state, or by both. */
function circuitDenials(blocker: CircuitHolder, { circuit }: CallOwners, role: Role, nowUs: number): readonly Denial[] {
  const host = circuit.name;
  const order = blocker.orderAt(nowUs);
  const at = blocker.at(nowUs);
  const ordered = order && new Denial({ host, role, ...order, state: "open", blocker }, nowUs);
  if (ordered !== undefined && at.kind !== "open") return [ordered];
  const untilUs = nextAdmissionUs(at);
  const estimatedUs = estimatedAdmissionUs(at, nowUs);
  const lastFailure = at.kind === "open" ? at.lastFailure : undefined;
  const times = { untilUs, estimatedUs };
  const denial = new Denial(
    { host, role, reason: "failures", state: stateName(at), ...times, blocker, lastFailure },
    nowUs,
  );
  return ordered === undefined ? [denial] : [ordered, denial];
}

/**
 * The operators' orders that open this role of a host or service of the call. They also apply if its circuits do not
 * decide about the call: a host whose service has the circuits, or one whose partitions have their own.
 */
function roleOrdersOf(owners: CallOwners, role: Role, nowUs: number) {
  return allOwners(owners).flatMap(owner => {
    const blocker = owner.circuits[role];
    const order = blocker?.orderAt(nowUs);
    return blocker === undefined || order === undefined ? [] : [{ owner, blocker, order }];
  });
}

/** The denial that ends last. */
function lastOf(denials: readonly Denial[]): Denial | undefined {
  return denials.length < 2
    ? denials[0]
    : denials.reduce((last, denial) => (denial.untilUs > last.untilUs ? denial : last));
}

/** Whether a cooldown or an order of an operator stops these calls, whatever the state of their circuits is. */
export function isStopped(
  owners: CallOwners,
  role: Role,
  circuits: readonly (CircuitHolder | undefined)[],
  nowUs: number,
): boolean {
  if (!owners.isShadow) {
    if (circuits.some(circuit => circuit?.orderAt(nowUs) !== undefined)) return true;
    for (const owner of mayHaveCooldown(owners) ? distinctOwners(owners) : [])
      if (owner.cooldownAt(nowUs) !== undefined) return true;
    if (owners.common.some(owner => owner.orderAt(nowUs) !== undefined)) return true;
    if (mayHaveCooldown(owners) && roleOrdersOf(owners, role, nowUs).length > 0) return true;
  }
  return holdDenialOf(owners, role, nowUs) !== undefined;
}

/** The hold of an operator that denies a call: of several, the one that ends last. It is enforced in shadow mode too. */
export function holdDenialOf(owners: CallOwners, role: Role, nowUs: number): Denial | undefined {
  if (!mayHaveCooldown(owners)) return undefined;
  let last: Denial | undefined;
  for (const blocker of allOwners(owners)) {
    const hold = blocker.holdAt(role, nowUs);
    if (hold === undefined || (last !== undefined && last.untilUs >= hold.untilUs)) continue;
    last = new Denial({ host: blocker.name, role, ...hold, state: "open", blocker, isHold: true }, nowUs);
  }
  return last;
}

/** The denial of a probe that this process admits, but its peers refuse or have not permitted yet. */
export function probeDenialOf(
  probes: ProbePermissions,
  host: HostBreaker,
  role: Role,
  circuits: readonly (CircuitHolder | undefined)[],
  nowUs: number,
  leaseUs: number,
): Denial | undefined {
  for (const blocker of circuits) {
    if (blocker === undefined || blocker.isClosed) continue;
    const permission = probes.mayProbe(blocker, nowUs, leaseUs);
    if (permission === true) continue;
    const { untilUs, isPending: isProbePending } = permission;
    const details = { reason: "failures", state: stateName(blocker.at(nowUs)), untilUs, blocker } as const;
    return new Denial({ host: host.name, role, ...details, isProbePending }, nowUs);
  }
  return undefined;
}
