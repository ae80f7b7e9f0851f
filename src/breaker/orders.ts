import type { BreakerOrder, OperatorOrder, RoleOrder } from "../core/breaker/breaker-order.ts";
import { RESOLVER_CIRCUIT } from "../core/breaker/breaker-record.ts";
import { wallDeadlineMs } from "../core/breaker/circuit.ts";
import type { HoldOrder } from "../core/breaker/hold-orders.ts";
import { type LimitOrder, limitsOf } from "../core/breaker/limit-orders.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { formatRates } from "../core/limits/rate.ts";
import type { OpenReason } from "../errors.ts";
import { isLimitPart, isRole, LIMIT_PARTS, type LimitPart, ROLES, type Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { Blocker, BreakerChange, ChangeOrigin } from "./breaker-change.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { CircuitHolder, TimedOrder } from "./circuit-holder.ts";
import type { CooldownEvents } from "./cooldown-events.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { RampUps } from "./ramp-up.ts";

/** What an order for circuits and holds is for: a host or `service <name>`, one role of it, or a resolver. */
export type BreakerTarget = { readonly unit: string; readonly role?: Role | undefined } | { readonly resolver: string };

/** What any order is for. An order that changes limits can be for a total, which has no circuit. */
export type OrderTarget = BreakerTarget | { readonly unit: string; readonly role?: LimitPart | undefined };

/** A target, and the hosts and services that decide about the same calls. */
export interface ResolvedTarget<Target extends OrderTarget = OrderTarget> {
  readonly target: Target;
  /** The other hosts and services whose circuits and cooldowns decide about its calls. */
  readonly others: readonly string[];
  /** The host or service whose circuits decide about its calls; undefined for a resolver. */
  readonly circuitOwner: string | undefined;
}

/** An order as a program or a command gives it. */
export type OrderRequest =
  | { readonly kind: "open"; readonly ms: number; readonly reason: OpenReason; readonly isReplacing: boolean }
  | { readonly kind: "close" }
  | { readonly kind: "half-open" }
  /** Calls wait for its end as for a rate limit. Not for a resolver. */
  | { readonly kind: "hold"; readonly ms: number; readonly reason: OpenReason }
  | { readonly kind: "release" }
  /** Changes the limits of a host or service for a while; the newest such order counts. Not for a resolver. */
  | ({ readonly kind: "set-limit"; readonly ms: number } & Omit<OrderedLimit, "untilUs">)
  | { readonly kind: "reset-limit"; readonly reason: string; readonly by: string };

/** An order for circuits. */
export type CircuitRequest = OrderRequest & { readonly kind: BreakerOrder["kind"] };

/** An order for the rate limits of a host or service. Its circuits are not changed. */
export type LimitRequest = OrderRequest & { readonly kind: RoleOrder["kind"] };

/** The name of the circuit in the shared record; undefined for a whole host. Throws a RangeError for a total. */
function circuitOfTarget(target: OrderTarget): string | undefined {
  return "resolver" in target ? RESOLVER_CIRCUIT : circuitRoleOf(target.unit, target.role);
}

/** The target of an order for circuits or holds. Throws a RangeError for a total. */
export function circuitTarget(target: OrderTarget): BreakerTarget {
  if ("resolver" in target) return target;
  return { ...target, role: circuitRoleOf(target.unit, target.role) };
}

/** An order for circuits or holds, and its target. */
export interface TargetOrder {
  readonly target: BreakerTarget;
  readonly request: OrderRequest;
}

/**
 * The orders that carry out an order for a target, the one for the target itself last. An order to open is given to the
 * target alone. An order to close or half-open is also given to the other hosts and services that decide about its calls,
 * because an open circuit of any of them would still refuse the calls.
 */
export function ordersForAll(
  { target, others, circuitOwner }: ResolvedTarget<BreakerTarget>,
  request: CircuitRequest,
): readonly TargetOrder[] {
  if ("resolver" in target || request.kind === "open") return [{ target, request }];
  // If the calls pass the circuits of a service, the circuits of the host get no trial calls. They would stay half-open
  // for ever, so they are closed.
  const own: CircuitRequest = target.unit === circuitOwner ? request : { kind: "close" };
  return [...others.map(unit => ({ target: { ...target, unit }, request })), { target, request: own }];
}

function circuitRoleOf(unit: string, role: LimitPart | undefined): Role | undefined {
  if (role !== "total") return role;
  throw new RangeError(
    `the total of ${unit} has limits, but no circuit, cooldown or hold: name a role, or leave it out to mean all roles`,
  );
}

/**
 * The roles that an order for limits is for, or the total. An order that ends the changes of a whole host also ends the
 * change of its total.
 */
function limitPartsOf(role: LimitPart | undefined, kind: LimitRequest["kind"]): readonly LimitPart[] {
  if (role !== undefined) return [role];
  return kind === "reset-limit" ? LIMIT_PARTS : ROLES;
}

/** The order in the form of the shared records. */
export function orderFor(target: OrderTarget, request: OrderRequest): OperatorOrder {
  if (isLimitRequest(request)) {
    if ("resolver" in target) throw new RangeError("a resolver has no rate limits: name a host or service");
    const isHold = request.kind === "hold" || request.kind === "release";
    const role = isHold ? circuitRoleOf(target.unit, target.role) : target.role;
    return roleOrderFor(request, limitPartsOf(role, request.kind));
  }
  const circuit = circuitOfTarget(target);
  if (request.kind === "close") return { kind: "close", circuit };
  if (request.kind === "half-open") return { kind: "half-open", circuit, circuits: ROLES };
  const { ms, reason, isReplacing } = request;
  return { kind: "open", circuit, durationUs: Math.ceil(ms * 1000), reason, isReplacing };
}

/** Whether the order is for the rate limits of a host, and not for its circuits. */
function isLimitRequest(request: OrderRequest): request is LimitRequest {
  const { kind } = request;
  return kind === "hold" || kind === "release" || kind === "set-limit" || kind === "reset-limit";
}

function roleOrderFor(request: LimitRequest, roles: readonly string[]): RoleOrder {
  if (request.kind === "release") return { kind: "release", roles };
  if (request.kind === "reset-limit") return { kind: "reset-limit", roles, reason: request.reason, by: request.by };
  const durationUs = Math.ceil(request.ms * 1000);
  if (request.kind === "hold") return { kind: "hold", roles, durationUs, reason: request.reason };
  const { rates, maxConcurrent, isForced, reason, by } = request;
  return { kind: "set-limit", roles, durationUs, rates: formatRates(rates), maxConcurrent, isForced, reason, by };
}

export interface OrdersDeps {
  readonly table: BreakerTable;
  readonly time: Time;
  readonly emitter: BreakerEmitter;
  readonly cooldownEvents: CooldownEvents;
  readonly rampUps: RampUps;
  /** The number of the permit that was issued last. */
  readonly lastPermit: () => number;
  readonly record: (change: BreakerChange) => void;
}

/**
 * Applies orders of operators to the hosts and circuits of this process. The orders were given in this process, or come
 * from shared records.
 */
export class Orders {
  readonly #deps: OrdersDeps;

  constructor(deps: OrdersDeps) {
    this.#deps = deps;
  }

  /** An order that was given in this process. */
  give(target: OrderTarget, request: OrderRequest): void {
    const { table } = this.#deps;
    const order = orderFor(target, request);
    if (order.kind === "hold" || order.kind === "release") this.#giveHold(target, order);
    else if (order.kind === "set-limit" || order.kind === "reset-limit") this.#giveLimit(target, order);
    else if ("resolver" in target) this.#giveToCircuit(table.resolver(target.resolver), order);
    else {
      const host = table.host(target.unit);
      const role = circuitRoleOf(target.unit, target.role);
      // An order to open a host refuses the calls of its partitions too, so they need no order of their own.
      const owners = order.kind === "open" ? [host] : [host, ...table.partitionsOf(target.unit)];
      for (const owner of owners)
        if (role === undefined) this.#giveToHost(owner, order);
        else this.#giveToCircuit(table.circuit(owner, role), order);
    }
  }

  /** Opens the host as ordered, even for a shorter time than before; undefined ends the order. */
  openHost(host: HostBreaker, order: TimedOrder | undefined, origin: ChangeOrigin): void {
    const { cooldownEvents, rampUps, lastPermit } = this.#deps;
    const old = host.orderAt(this.#deps.time.monotonicUs());
    const cooldown = order && { ...order, afterPermit: lastPermit(), origin };
    host.cooldowns.setOrder(cooldown);
    if (cooldown !== undefined) {
      rampUps.start(host, cooldown.reason);
      cooldownEvents.began(host, cooldown);
    } else if (old !== undefined) cooldownEvents.ended(host, "operator");
    if (origin === "peer") this.#record(host, undefined);
  }

  /** As `openHost`, for one circuit. */
  openCircuit(circuit: CircuitHolder, order: TimedOrder | undefined, origin: ChangeOrigin): void {
    const { host, resolver, role } = circuit.name;
    const owner = host ?? `resolver ${resolver}`;
    const old = circuit.orderAt(this.#deps.time.monotonicUs());
    circuit.setOrder(order);
    const { emitter, rampUps, table } = this.#deps;
    if (order !== undefined && host !== undefined && role !== undefined)
      rampUps.start(table.host(host), order.reason, [role]);
    if (order !== undefined)
      emitter.cooldownSet(owner, this.#wallMs(order.untilUs), order.reason, origin === "peer", role);
    else if (old !== undefined) emitter.cooldownEnded(owner, "operator", role);
    if (origin === "peer") this.#record(circuit, undefined);
  }

  /**
   * Closes one circuit, and ends its ramp-up. An order to open it stays; `openCircuit` without an order ends that.
   * @param orderedUs when the order was given. If calls of this process opened the circuit after that, it stays open. If a
   *   cooldown started after that, its ramp-up goes on. @default now
   */
  closeCircuit(circuit: CircuitHolder, origin: ChangeOrigin, orderedUs = Number.POSITIVE_INFINITY): void {
    const { table, rampUps } = this.#deps;
    const { host, role } = circuit.name;
    if (host !== undefined && role !== undefined) this.endFormer(host, "circuit", [role]);
    const known = host === undefined ? undefined : table.find(host);
    if (known !== undefined) rampUps.end(known, role, orderedUs);
    if (!circuit.isOpenedSince(orderedUs)) circuit.close(origin);
  }

  /**
   * Closes every circuit of a host or service, and ends its cooldowns.
   * @param orderedUs when the order was given. A Retry-After that this process has received later stays, and so does a
   *   circuit that its calls have opened later. @default now
   */
  reset(host: HostBreaker, origin: ChangeOrigin, orderedUs = Number.POSITIVE_INFINITY): void {
    const { time, cooldownEvents, rampUps } = this.#deps;
    this.endFormer(host.name, "host");
    const wasCooling = host.cooldownAt(time.monotonicUs()) !== undefined;
    host.reset(orderedUs);
    const kept = host.cooldownAt(time.monotonicUs());
    if (kept === undefined) rampUps.end(host, undefined, orderedUs);
    else rampUps.start(host, kept.reason);
    for (const role of ROLES) {
      const circuit = host.circuits[role];
      if (circuit === undefined) continue;
      this.openCircuit(circuit, undefined, origin);
      if (!circuit.isOpenedSince(orderedUs)) circuit.close(origin);
    }
    if (origin === "peer") this.#record(host, undefined);
    if (wasCooling) cooldownEvents.ended(host, "operator");
  }

  /** Ends the state from before a reload that still denies calls of a host or service. The waiting calls are tried again. */
  endFormer(name: string, kind: "host" | "circuit" | "hold", roles: readonly Role[] = ROLES): void {
    const { table, record } = this.#deps;
    for (const breaker of table.former.end({ name, kind, roles })) {
      const circuits = ROLES.flatMap(role => breaker.circuits[role] ?? []);
      for (const blocker of [breaker, ...circuits, ...breaker.rampUps()])
        record({ kind: "order", origin: "peer", blocker, order: undefined });
    }
  }

  /**
   * An order of a peer to close or half-open a host, or one role, also applies to the partitions that this process calls.
   * It is written to their records, and applied when these are read back. It keeps the version that it has in the record
   * of the host, so that it ends no newer order of a partition.
   */
  passToPartitions(name: string, order: BreakerOrder, version: number): void {
    const { table, record } = this.#deps;
    for (const blocker of table.partitionsOf(name)) record({ kind: "order", origin: "local", blocker, order, version });
  }

  /** Holds these roles of a host as ordered, even for a shorter time than before; undefined releases them. */
  hold(host: HostBreaker, roles: readonly Role[], hold: TimedOrder | undefined, order?: OperatorOrder): void {
    for (const role of roles) host.setHold(role, hold);
    if (hold === undefined) this.endFormer(host.name, "hold", roles);
    const origin = order === undefined ? "peer" : "local";
    this.#deps.record({ kind: "hold", origin, blocker: host, roles, untilUs: hold?.untilUs ?? 0, order });
  }

  /** Changes the limits of these parts of a host as ordered, or ends such a change. The gate applies it. */
  limit(host: HostBreaker, roles: readonly LimitPart[], limit: OrderedLimit, order?: OperatorOrder): void {
    for (const role of roles) host.setLimit(role, limit);
    const origin = order === undefined ? "peer" : "local";
    this.#deps.record({ kind: "limit", origin, blocker: host, roles, limit, order });
  }

  #giveLimit(target: OrderTarget, order: LimitOrder): void {
    if (!("unit" in target)) return;
    const { table, time } = this.#deps;
    const { reason, by } = order;
    const limit =
      order.kind === "reset-limit"
        ? { rates: [], isForced: false, untilUs: 0 }
        : { ...limitsOf(order), isForced: order.isForced, untilUs: time.monotonicUs() + order.durationUs };
    this.limit(table.host(target.unit), order.roles.filter(isLimitPart), { ...limit, reason, by }, order);
  }

  #giveHold(target: OrderTarget, order: HoldOrder): void {
    if (!("unit" in target)) return;
    const { table, time } = this.#deps;
    const host = table.host(target.unit);
    const roles = order.roles.filter(isRole);
    const nowUs = time.monotonicUs();
    const next =
      order.kind === "hold" ? { untilUs: nowUs + order.durationUs, reason: order.reason as OpenReason } : undefined;
    // Of two holds the later end counts. The order is published in both cases: a peer may have ended the running one.
    const changed = roles.filter(role => (host.holdAt(role, nowUs)?.untilUs ?? 0) < (next?.untilUs ?? Infinity));
    this.hold(host, changed, next, order);
  }

  #giveToHost(host: HostBreaker, order: BreakerOrder): void {
    const { table, time } = this.#deps;
    const nowUs = time.monotonicUs();
    if (order.kind === "open") {
      const opened = openedUntil(order, host.orderAt(nowUs), nowUs);
      if (opened !== undefined) this.openHost(host, opened, "local");
    } else {
      this.reset(host, "local");
      if (order.kind === "half-open") for (const role of ROLES) table.circuit(host, role).halfOpen(nowUs, "local");
    }
    this.#record(host, order);
  }

  #giveToCircuit(circuit: CircuitHolder, order: BreakerOrder): void {
    const nowUs = this.#deps.time.monotonicUs();
    if (order.kind === "open") {
      const opened = openedUntil(order, circuit.orderAt(nowUs), nowUs);
      if (opened !== undefined) this.openCircuit(circuit, opened, "local");
    } else {
      this.openCircuit(circuit, undefined, "local");
      this.closeCircuit(circuit, "local");
      if (order.kind === "half-open") circuit.halfOpen(nowUs, "local");
    }
    this.#record(circuit, order);
  }

  /** Without an order, the change was read from a record and is not published. */
  #record(blocker: Blocker, order: BreakerOrder | undefined): void {
    this.#deps.record({ kind: "order", origin: order === undefined ? "peer" : "local", blocker, order });
  }

  #wallMs(untilUs: number): number {
    const { time } = this.#deps;
    return wallDeadlineMs(untilUs, { monotonicUs: time.monotonicUs(), wallMs: time.wallMs() });
  }
}

/**
 * The new order to open; undefined if the running one ends later and is not to be replaced. The new order is published
 * in both cases: a peer may have ended the running one, and this process does not know it yet.
 */
function openedUntil(
  { durationUs, reason, isReplacing = false }: BreakerOrder & { readonly kind: "open" },
  running: TimedOrder | undefined,
  nowUs: number,
): TimedOrder | undefined {
  const untilUs = nowUs + durationUs;
  if (!isReplacing && running !== undefined && running.untilUs >= untilUs) return undefined;
  return { untilUs, reason: reason as OpenReason };
}
