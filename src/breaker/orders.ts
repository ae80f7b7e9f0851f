import type { BreakerOrder, OperatorOrder, RoleOrder } from "../core/breaker/breaker-order.ts";
import { wallDeadlineMs } from "../core/breaker/circuit.ts";
import type { HoldOrder } from "../core/breaker/hold-orders.ts";
import type { LimitOrder } from "../core/breaker/limit-orders.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { formatRates, parseRates } from "../core/limits/rate.ts";
import type { OpenReason } from "../errors.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { Blocker, BreakerChange, ChangeOrigin } from "./breaker-change.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { CircuitHolder, CircuitOrder } from "./circuit-holder.ts";
import type { CooldownEvents } from "./cooldown-events.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { RampUps } from "./ramp-up.ts";

/** What an order is for: a host or `service <name>`, one role of it, or a resolver. */
export type BreakerTarget = { readonly unit: string; readonly role?: Role | undefined } | { readonly resolver: string };

/** An order as a program or a command gives it. */
export type OrderRequest =
  | { readonly kind: "open"; readonly ms: number; readonly reason: OpenReason; readonly isReplacing: boolean }
  | { readonly kind: "close" }
  | { readonly kind: "half-open" }
  /** Calls wait for its end as for a rate limit. Not for a resolver. */
  | { readonly kind: "hold"; readonly ms: number; readonly reason: OpenReason }
  | { readonly kind: "release" }
  /** Changes the rates of a host or service for a while; the newest such order counts. Not for a resolver. */
  | ({ readonly kind: "set-limit"; readonly ms: number } & Omit<OrderedLimit, "untilUs">)
  | { readonly kind: "reset-limit"; readonly reason: string; readonly by: string };

/** An order for the rate limits of a host or service. Its circuits are not changed. */
export type LimitRequest = OrderRequest & { readonly kind: RoleOrder["kind"] };

/** The name of the circuit in the shared record; undefined for a whole host. */
function circuitOfTarget(target: BreakerTarget): string | undefined {
  return "resolver" in target ? "" : target.role;
}

/** The order in the form of the shared records. */
export function orderFor(target: BreakerTarget, request: OrderRequest): OperatorOrder {
  const circuit = circuitOfTarget(target);
  if (isLimitRequest(request)) {
    if ("resolver" in target) throw new RangeError("a resolver has no rate limits: name a host or service");
    return roleOrderFor(request, circuit === undefined ? ROLES : [circuit]);
  }
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
  const { rates, isForced, reason, by } = request;
  return { kind: "set-limit", roles, durationUs, rates: formatRates(rates), isForced, reason, by };
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

/** Applies the orders of operators to the hosts and circuits of this process: its own, and those of shared records. */
export class Orders {
  readonly #deps: OrdersDeps;

  constructor(deps: OrdersDeps) {
    this.#deps = deps;
  }

  /** An order that was given in this process. */
  give(target: BreakerTarget, request: OrderRequest): void {
    const { table } = this.#deps;
    const order = orderFor(target, request);
    if (order.kind === "hold" || order.kind === "release") this.#giveHold(target, order);
    else if (order.kind === "set-limit" || order.kind === "reset-limit") this.#giveLimit(target, order);
    else if ("unit" in target && target.role === undefined) this.#giveToHost(target.unit, order);
    else
      this.#giveToCircuit(
        "resolver" in target
          ? table.resolver(target.resolver)
          : table.circuit(table.host(target.unit), target.role as Role),
        order,
      );
  }

  /** Opens the host as ordered, also for a shorter time than before; undefined ends the order. */
  openHost(host: HostBreaker, order: CircuitOrder | undefined, origin: ChangeOrigin): void {
    const { cooldownEvents, rampUps, lastPermit } = this.#deps;
    const old = host.orderAt(this.#deps.time.monotonicUs());
    host.cooldowns.setOrder(order && { ...order, afterPermit: lastPermit() });
    if (order !== undefined) rampUps.start(host, order.reason);
    if (order !== undefined) cooldownEvents.began(host, order, origin === "peer");
    else if (old !== undefined) cooldownEvents.ended(host, "operator");
    if (origin === "peer") this.#record(host, undefined);
  }

  /** As `openHost`, for one circuit. */
  openCircuit(circuit: CircuitHolder, order: CircuitOrder | undefined, origin: ChangeOrigin): void {
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
   * Closes every circuit of a host or service and of its partitions, and ends their cooldowns. The order for a partition
   * is always our own: only the processes that call it write its record.
   * @param orderedUs when the order was given; a Retry-After that this process has received later stays. @default now
   */
  reset(name: string, origin: ChangeOrigin, orderedUs?: number): void {
    const { table } = this.#deps;
    const known = table.find(name);
    if (known !== undefined) this.#resetHost(known, origin, orderedUs);
    for (const partition of table.partitionsOf(name)) {
      const isCooling = this.#resetHost(partition, "local", orderedUs);
      if (!isCooling) this.#record(partition, { kind: "close" });
    }
  }

  /** Holds these roles of a host as ordered, also for a shorter time than before; undefined releases them. */
  hold(host: HostBreaker, roles: readonly Role[], hold: CircuitOrder | undefined, order?: OperatorOrder): void {
    for (const role of roles) host.setHold(role, hold);
    const origin = order === undefined ? "peer" : "local";
    this.#deps.record({ kind: "hold", origin, blocker: host, roles, untilUs: hold?.untilUs ?? 0, order });
  }

  /** Changes the rates of these roles of a host as ordered, or ends such a change. The gate applies it. */
  limit(host: HostBreaker, roles: readonly Role[], limit: OrderedLimit, order?: OperatorOrder): void {
    for (const role of roles) host.setLimit(role, limit);
    const origin = order === undefined ? "peer" : "local";
    this.#deps.record({ kind: "limit", origin, blocker: host, roles, limit, order });
  }

  #giveLimit(target: BreakerTarget, order: LimitOrder): void {
    if (!("unit" in target)) return;
    const { table, time } = this.#deps;
    const roles = target.role === undefined ? ROLES : [target.role];
    const { reason, by } = order;
    const limit =
      order.kind === "reset-limit"
        ? { rates: [], isForced: false, untilUs: 0 }
        : { ...order, rates: parseRates(order.rates), untilUs: time.monotonicUs() + order.durationUs };
    this.limit(table.host(target.unit), roles, { ...limit, reason, by }, order);
  }

  #giveHold(target: BreakerTarget, order: HoldOrder): void {
    if (!("unit" in target)) return;
    const { table, time } = this.#deps;
    const host = table.host(target.unit);
    const roles = target.role === undefined ? ROLES : [target.role];
    const nowUs = time.monotonicUs();
    const next =
      order.kind === "hold" ? { untilUs: nowUs + order.durationUs, reason: order.reason as OpenReason } : undefined;
    // Of two holds the later end counts. The order is published all the same: a peer may have ended the running one.
    const changed = roles.filter(role => (host.holdAt(role, nowUs)?.untilUs ?? 0) < (next?.untilUs ?? Infinity));
    this.hold(host, changed, next, order);
  }

  #giveToHost(unit: string, order: BreakerOrder): void {
    const { table, time } = this.#deps;
    const host = table.host(unit);
    const nowUs = time.monotonicUs();
    if (order.kind === "open") {
      const opened = openedUntil(order, host.orderAt(nowUs), nowUs);
      if (opened !== undefined) this.openHost(host, opened, "local");
    } else {
      this.reset(unit, "local");
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
      const { host, role } = circuit.name;
      if (host !== undefined) this.#deps.rampUps.end(this.#deps.table.host(host), role);
      if (order.kind === "close") circuit.close("local");
      else circuit.halfOpen(nowUs, "local");
    }
    this.#record(circuit, order);
  }

  /** True if a newer Retry-After stays. */
  #resetHost(host: HostBreaker, origin: ChangeOrigin, orderedUs?: number): boolean {
    const { time, cooldownEvents, rampUps } = this.#deps;
    const wasCooling = host.cooldownAt(time.monotonicUs()) !== undefined;
    host.reset(orderedUs);
    const kept = host.cooldownAt(time.monotonicUs());
    if (kept === undefined) rampUps.end(host);
    else rampUps.start(host, kept.reason);
    for (const role of ROLES) {
      const circuit = host.circuits[role];
      if (circuit === undefined) continue;
      this.openCircuit(circuit, undefined, origin);
      circuit.close(origin);
    }
    if (origin === "peer") this.#record(host, undefined);
    if (wasCooling) cooldownEvents.ended(host, "operator");
    return kept !== undefined;
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
 * The new order to open; undefined if the running one ends later and is not to be replaced. It is published all the same:
 * a peer may have ended the running one, and this process does not know it yet.
 */
function openedUntil(
  { durationUs, reason, isReplacing = false }: BreakerOrder & { readonly kind: "open" },
  running: CircuitOrder | undefined,
  nowUs: number,
): CircuitOrder | undefined {
  const untilUs = nowUs + durationUs;
  if (!isReplacing && running !== undefined && running.untilUs >= untilUs) return undefined;
  return { untilUs, reason: reason as OpenReason };
}
