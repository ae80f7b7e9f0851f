/** A simple reference model of the breakers, with which the real ones are compared. */
import type { BreakerPermit } from "../../src/breaker/permit.ts";

export const HOSTS = ["a.example", "b.example"] as const;
export const ROLES = ["metadata", "artifact"] as const;
export const RESOLVERS = [undefined, "crossref"] as const;
export const PROBES = { metadata: 1, artifact: 2 } as const;
export const FAIL_MAX = 3;
export const RESET_MS = 1000;
export const CAP_MS = 4000;
export const ROLLING = { windowMs: 2000, threshold: 4, cooldownMs: 1500 };
const LEASE_MS = 2000 + 5000;
/** Low, so that many ramp-ups come to their end. */
export const RAMP_MAX = 4;

export interface ModelCircuit {
  state: "closed" | "open" | "half_open";
  /** Replaced at every change of state: a permit of an earlier one no longer counts. */
  era: object;
  failures: number;
  throttles: number;
  untilMs: number;
  reopened: number;
  readonly maxProbes: number;
  probes: { readonly permit: object; readonly untilMs: number }[];
  /** Of a resolver: the permits that were issued before its last throttle that counted. */
  throttled: ReadonlySet<object>;
}

/** Traffic of one role that resumes after a cooldown. */
interface ModelRamp {
  limit: number;
  answered: number;
  calls: { readonly permit: object; readonly untilMs: number }[];
}

export interface ModelHost {
  readonly ramps: Record<string, ModelRamp | undefined>;
  readonly circuits: Readonly<Record<string, ModelCircuit>>;
  operatorUntilMs: number;
  serverUntilMs: number;
  /** The current cooldown comes from Retry-After, not from the rolling window. */
  isRetryAfter: boolean;
  failuresMs: number[];
  /** The permits that were issued before the last throttle that counted. */
  throttled: ReadonlySet<object>;
}

export interface IssuedPermit {
  readonly permit: BreakerPermit;
  readonly host: ModelHost;
  readonly role: string;
  /** It was issued while traffic resumed. */
  readonly isRamped: boolean;
  readonly passed: readonly { readonly circuit: ModelCircuit; readonly era: object }[];
}

/** Keeps plain lists and shares no code with the breakers. */
export class BreakerModel {
  readonly hosts: readonly ModelHost[] = HOSTS.map(() => ({
    circuits: { metadata: fresh(PROBES.metadata), artifact: fresh(PROBES.artifact) },
    ramps: {},
    operatorUntilMs: 0,
    serverUntilMs: 0,
    isRetryAfter: false,
    failuresMs: [],
    throttled: new Set(),
  }));
  readonly #permits = new Set<object>();
  readonly #resolvers: Readonly<Record<string, ModelCircuit>> = { crossref: fresh(1) };

  advance(circuit: ModelCircuit, nowMs: number): ModelCircuit {
    if (circuit.state === "open" && nowMs >= circuit.untilMs) setState(circuit, "half_open");
    circuit.probes = circuit.probes.filter(({ untilMs }) => untilMs > nowMs);
    return circuit;
  }

  isAllowed(host: number, role: string, resolver: string | undefined, nowMs: number): boolean {
    const { operatorUntilMs, serverUntilMs, ramps } = this.hosts[host] as ModelHost;
    if (operatorUntilMs > nowMs || serverUntilMs > nowMs) return false;
    const ramp = ramps[role];
    if (ramp !== undefined) ramp.calls = ramp.calls.filter(({ untilMs }) => untilMs > nowMs);
    const isHeldBack = ramp !== undefined && ramp.calls.length >= ramp.limit;
    return (
      !isHeldBack &&
      this.#circuits(host, role, resolver).every(circuit => {
        const { state, probes, maxProbes } = this.advance(circuit, nowMs);
        return state === "closed" || (state === "half_open" && probes.length < maxProbes);
      })
    );
  }

  pass(
    host: number,
    role: string,
    resolver: string | undefined,
    permit: object,
    nowMs: number,
  ): Omit<IssuedPermit, "permit"> {
    const circuits = this.#circuits(host, role, resolver);
    this.#permits.add(permit);
    for (const circuit of circuits)
      if (circuit.state === "half_open") circuit.probes.push({ permit, untilMs: nowMs + LEASE_MS });
    const modelHost = this.hosts[host] as ModelHost;
    const ramp = modelHost.ramps[role];
    ramp?.calls.push({ permit, untilMs: nowMs + LEASE_MS });
    const passed = circuits.map(circuit => ({ circuit, era: circuit.era }));
    return { host: modelHost, role, isRamped: ramp !== undefined, passed };
  }

  /** `resets`: it also ends a row of failures; a 404 does not. */
  succeed(issued: IssuedPermit, nowMs: number, resets: boolean): void {
    const { host, role, passed, permit } = issued;
    const ramp = host.ramps[role];
    if (ramp !== undefined && leave(ramp, permit)) {
      ramp.answered += 1;
      if (ramp.answered === ramp.limit) Object.assign(ramp, { limit: ramp.limit * 2, answered: 0 });
      if (ramp.limit >= RAMP_MAX) host.ramps[role] = undefined;
    }
    for (const { circuit, era } of passed) {
      this.advance(circuit, nowMs);
      if (circuit.era !== era) continue;
      if (resets) Object.assign(circuit, { failures: 0, throttles: 0 });
      circuit.probes = circuit.probes.filter(probe => probe.permit !== permit);
      if (circuit.state !== "half_open") continue;
      setState(circuit, "closed");
      if (circuit === passed[0]?.circuit) host.failuresMs = [];
    }
  }

  fail(issued: IssuedPermit, retryAfterMs: number | undefined, nowMs: number): void {
    const { host, role, passed } = issued;
    for (const { circuit } of passed) this.advance(circuit, nowMs);
    const ramp = host.ramps[role];
    if (issued.isRamped && ramp !== undefined) {
      leave(ramp, issued.permit);
      Object.assign(ramp, { limit: PROBES[role as "metadata"], answered: 0 });
    }
    // No call is allowed in a cooldown, so a permit that is reported during one was issued before it.
    const isInCooldown = host.isRetryAfter && host.serverUntilMs > nowMs;
    const isThrottle = retryAfterMs !== undefined;
    const isRepeated = isThrottle && (isInCooldown || host.throttled.has(issued.permit));
    if (isThrottle && retryAfterMs > 0) this.#startCooldown(host, nowMs + Math.min(CAP_MS, retryAfterMs), true);
    if (isRepeated) {
      this.giveBack(issued);
      return;
    }
    if (isThrottle) host.throttled = new Set(this.#permits);
    const isCurrent = passed[0]?.circuit.era === passed[0]?.era;
    for (const [index, { circuit, era }] of passed.entries()) {
      // The second circuit is that of a resolver, which calls both hosts.
      if (index > 0 && isThrottle) {
        const isCounted = circuit.throttled.has(issued.permit);
        if (isCounted) circuit.probes = circuit.probes.filter(({ permit }) => permit !== issued.permit);
        if (isCounted) continue;
        circuit.throttled = new Set(this.#permits);
      }
      if (circuit.era !== era) continue;
      if (isThrottle) circuit.throttles += 1;
      else circuit.failures += 1;
      if (circuit.state === "closed" && Math.max(circuit.failures, circuit.throttles) < FAIL_MAX) continue;
      circuit.untilMs = nowMs + RESET_MS;
      setState(circuit, "open");
    }
    if (!isCurrent) return;
    host.failuresMs = [...host.failuresMs, nowMs];
    if (host.failuresMs.filter(at => at > nowMs - ROLLING.windowMs).length < ROLLING.threshold) return;
    host.failuresMs = [];
    this.#startCooldown(host, nowMs + ROLLING.cooldownMs, false);
  }

  #startCooldown(host: ModelHost, untilMs: number, isRetryAfter: boolean): void {
    if (untilMs <= host.serverUntilMs) return;
    host.serverUntilMs = untilMs;
    host.isRetryAfter = isRetryAfter;
    this.#startRamps(host);
  }

  #startRamps(host: ModelHost): void {
    for (const role of ROLES)
      host.ramps[role] = PROBES[role] < RAMP_MAX ? { limit: PROBES[role], answered: 0, calls: [] } : undefined;
  }

  giveBack({ host, role, passed, permit }: IssuedPermit): void {
    const ramp = host.ramps[role];
    if (ramp !== undefined) leave(ramp, permit);
    for (const { circuit } of passed) circuit.probes = circuit.probes.filter(probe => probe.permit !== permit);
  }

  open(host: number, untilMs: number): void {
    const modelHost = this.hosts[host] as ModelHost;
    if (untilMs <= modelHost.operatorUntilMs) return;
    modelHost.operatorUntilMs = untilMs;
    this.#startRamps(modelHost);
  }

  close(host: number): void {
    const modelHost = this.hosts[host] as ModelHost;
    modelHost.operatorUntilMs = 0;
    modelHost.serverUntilMs = 0;
    modelHost.failuresMs = [];
    for (const role of ROLES) modelHost.ramps[role] = undefined;
    for (const circuit of Object.values(modelHost.circuits)) {
      if (circuit.state !== "closed" || circuit.failures + circuit.throttles > 0) setState(circuit, "closed");
    }
  }

  #circuits(host: number, role: string, resolver: string | undefined): readonly ModelCircuit[] {
    const own = (this.hosts[host] as ModelHost).circuits[role] as ModelCircuit;
    return resolver === undefined ? [own] : [own, this.#resolvers[resolver] as ModelCircuit];
  }
}

/** False if the call was not part of the ramp-up. */
function leave(ramp: ModelRamp, permit: object): boolean {
  const before = ramp.calls.length;
  ramp.calls = ramp.calls.filter(call => call.permit !== permit);
  return ramp.calls.length < before;
}

function fresh(maxProbes: number): ModelCircuit {
  const counts = { failures: 0, throttles: 0, reopened: 0, probes: [], throttled: new Set<object>() };
  return { state: "closed", era: {}, untilMs: 0, maxProbes, ...counts };
}

function setState(circuit: ModelCircuit, state: ModelCircuit["state"]): void {
  circuit.state = state;
  circuit.era = {};
  circuit.failures = 0;
  circuit.throttles = 0;
  circuit.probes = [];
}
