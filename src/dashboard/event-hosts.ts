import { combinedStatus } from "../breaker/host-status.ts";
import { isRole } from "../policy/roles.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import type { CircuitStateName } from "./dashboard-state.ts";
import type { BreakerFacts, KeyFact } from "./host-states.ts";

interface ReportedCooldown {
  readonly untilMs: number;
  readonly reason: string;
}

interface ReportedCircuit {
  readonly state: CircuitStateName;
  readonly untilMs: number;
}

interface HostEvents {
  /** By role. */
  readonly circuits: Map<string, ReportedCircuit>;
  cooldown: ReportedCooldown | undefined;
  /** Orders of an operator that open one role, by role. */
  readonly orders: Map<string, ReportedCooldown>;
}

type KeyCounts = { -readonly [Name in keyof KeyFact]: KeyFact[Name] };

/** A crawler calls very many hosts. The page says that it lists the first ones only. */
export const HOSTS_MAX = 5000;
const RESOLVER = "resolver ";

/** The circuits and requests of each host, derived from the events of a run. */
export class EventHosts {
  readonly #hosts = new Map<string, HostEvents>();
  readonly #keys = new Map<string, KeyCounts>();
  #isPartial = false;

  /** Whether hosts or keys are missing, because there are more than `HOSTS_MAX`. */
  get isPartial(): boolean {
    return this.#isPartial;
  }

  take(event: TelemetryEvent): void {
    switch (event.event_type) {
      case "http_attempt": {
        if (event.connection === "none") return;
        const key = this.#key(event.key, event.role);
        if (key !== undefined) key.acquired += 1;
        return;
      }
      case "ratelimit.acquire": {
        const key = event.outcome === "refused" ? this.#key(event.key, event.role) : undefined;
        if (key !== undefined) key.refused += 1;
        return;
      }
      case "aimd_adjust": {
        const key = typeof event.new === "number" && event.new <= 1 ? this.#key(event.host, event.role) : undefined;
        if (key !== undefined) key.multiplier = Number(event.new);
        return;
      }
      case "breaker_state_change": {
        const name = event.host ?? `${RESOLVER}${event.resolver ?? ""}`;
        const untilMs = event.ts + event.reset_timeout_s * 1000;
        this.#host(name)?.circuits.set(event.role ?? "", { state: event.new, untilMs });
        return;
      }
      case "breaker_cooldown_set": {
        const host = this.#host(event.host);
        const cooldown = { untilMs: event.until, reason: event.reason };
        if (event.role !== undefined) host?.orders.set(event.role, cooldown);
        else if (host !== undefined) host.cooldown = cooldown;
        return;
      }
      case "breaker_cooldown_ended": {
        const host = this.#hosts.get(event.host);
        if (event.role !== undefined) host?.orders.delete(event.role);
        else if (host !== undefined) host.cooldown = undefined;
      }
    }
  }

  keys(): readonly KeyFact[] {
    return [...this.#keys.values()];
  }

  /** The breakers at an instant. @param isOver the run has ended: no time remains */
  breakers(nowMs: number, isOver: boolean): readonly BreakerFacts[] {
    return [...this.#hosts].map(([name, { circuits, cooldown, orders }]) => {
      const isResolver = name.startsWith(RESOLVER);
      const rows = [...new Set([...circuits.keys(), ...orders.keys()])].map(role => {
        const row = circuitRow(role, circuits.get(role), orders.get(role), nowMs);
        return isOver ? { ...row, remainingMs: 0 } : row;
      });
      const isCooling = cooldown !== undefined && cooldown.untilMs > nowMs;
      const activeCooldown = isCooling
        ? { remainingMs: isOver ? 0 : cooldown.untilMs - nowMs, reason: cooldown.reason }
        : undefined;
      const { state, reason, remainingMs } = combinedStatus(rows, activeCooldown);
      return {
        kind: isResolver ? ("resolver" as const) : ("host" as const),
        name: isResolver ? name.slice(RESOLVER.length) : name,
        state,
        reason,
        remainingMs,
        isCooling,
        windowFailures: 0,
        circuits: rows.map(({ reason: _, ...row }) => row),
      };
    });
  }

  #host(name: string): HostEvents | undefined {
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    if (this.#isFull(this.#hosts)) return undefined;
    const host: HostEvents = { circuits: new Map(), cooldown: undefined, orders: new Map() };
    this.#hosts.set(name, host);
    return host;
  }

  #isFull({ size }: ReadonlyMap<string, unknown>): boolean {
    this.#isPartial ||= size >= HOSTS_MAX;
    return size >= HOSTS_MAX;
  }

  #key(name: string, role: string): KeyCounts | undefined {
    const id = `${role} ${name}`;
    const known = this.#keys.get(id);
    if (known !== undefined || !isRole(role)) return known;
    if (this.#isFull(this.#keys)) return undefined;
    const key: KeyCounts = {
      key: name,
      role,
      windows: [],
      acquired: 0,
      refused: 0,
      inFlight: 0,
      maxConcurrent: Number.POSITIVE_INFINITY,
      waiting: 0,
      estimatedWaitMs: 0,
      constraint: undefined,
      multiplier: 1,
      guardMs: 0,
      shape: "burst",
    };
    this.#keys.set(id, key);
    return key;
  }
}

/** The circuit of a role at an instant. An order of an operator opens it, whatever its state is. */
function circuitRow(
  role: string,
  { state, untilMs }: ReportedCircuit = { state: "closed", untilMs: 0 },
  order: ReportedCooldown | undefined,
  nowMs: number,
) {
  const orderMs = Math.max(0, (order?.untilMs ?? 0) - nowMs);
  const openMs = state === "open" ? Math.max(0, untilMs - nowMs) : 0;
  // No event is emitted when the time of an open circuit is over: the next call is a trial call.
  const withoutOrder = state === "open" && openMs === 0 ? "half_open" : state;
  const isOrdered = order !== undefined && orderMs > 0;
  return {
    name: role,
    state: isOrdered ? ("open" as const) : withoutOrder,
    reason: isOrdered ? order.reason : "failures",
    remainingMs: Math.max(openMs, orderMs),
    probes: 0,
  };
}
