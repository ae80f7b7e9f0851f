/**
 * A simple reference model of the breakers, and random steps to compare both.
 * The model keeps plain lists and shares no code with the breakers.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { BreakerRegistry } from "../src/breaker/breaker-registry.ts";
import type { BreakerPermit } from "../src/breaker/permit.ts";
import { BreakerOpenError } from "../src/errors.ts";
import { FakeTime } from "../src/testing/fake-time.ts";

export type BreakerStep =
  | { readonly do: "allow"; readonly host: number; readonly role: number; readonly resolver: number }
  /** `answer` is a 404: neither a success nor a failure, and the host is alive. `neutral` ended without an answer. */
  | { readonly do: "succeed" | "answer" | "neutral" | "release"; readonly which: number }
  /** With `retryAfterMs` the failure is a throttle; 0 is a throttle without Retry-After. */
  | { readonly do: "fail"; readonly which: number; readonly retryAfterMs: number | undefined }
  | { readonly do: "advance" | "stall" | "stepWall"; readonly ms: number }
  | { readonly do: "open"; readonly host: number; readonly seconds: number }
  | { readonly do: "close"; readonly host: number };

const HOSTS = ["a.example", "b.example"] as const;
const ROLES = ["metadata", "artifact"] as const;
const RESOLVERS = [undefined, "crossref"] as const;
const PROBES = { metadata: 1, artifact: 2 } as const;
const FAIL_MAX = 3;
const RESET_MS = 1000;
const CAP_MS = 4000;
const ROLLING = { windowMs: 2000, threshold: 4, cooldownMs: 1500 };
const LEASE_MS = 2000 + 5000;
/** Low, so that many ramp-ups come to their end. */
const RAMP_MAX = 4;

const host = fc.nat({ max: 1 });
const which = fc.nat({ max: 20 });
const ms = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 0, max: 9000 }),
  fc.constantFrom(RESET_MS, 1500, 2000),
);

export const steps: fc.Arbitrary<readonly BreakerStep[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("allow" as const),
        host,
        role: fc.nat({ max: 1 }),
        resolver: fc.nat({ max: 1 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom("succeed" as const, "answer" as const, "neutral" as const, "release" as const),
        which,
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("fail" as const),
        which,
        retryAfterMs: fc.constantFrom(undefined, undefined, 0, 0, 500, 3000, 99_000),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constantFrom("advance" as const, "advance" as const, "stall" as const), ms }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("stepWall" as const), ms: fc.integer({ min: -1e7, max: 1e7 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("open" as const), host, seconds: fc.integer({ min: 1, max: 5 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("close" as const), host }) },
  ),
  { minLength: 50, maxLength: 150, size: "max" },
);

interface ModelCircuit {
  state: "closed" | "open" | "half_open";
  /** A new object with every change of state. */
  era: object;
  failures: number;
  throttles: number;
  untilMs: number;
  reopened: number;
  readonly maxProbes: number;
  probes: { readonly permit: object; readonly untilMs: number }[];
}

/** Traffic of one role that resumes after a cooldown. */
interface ModelRamp {
  limit: number;
  answered: number;
  calls: { readonly permit: object; readonly untilMs: number }[];
}

interface ModelHost {
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

interface IssuedPermit {
  readonly permit: BreakerPermit;
  readonly host: ModelHost;
  readonly role: string;
  /** It was issued while traffic resumed. */
  readonly isRamped: boolean;
  readonly passed: readonly { readonly circuit: ModelCircuit; readonly era: object }[];
}

/** Runs the steps on the registry and on the model; throws at the first difference. */
export async function runSteps(list: readonly BreakerStep[]): Promise<void> {
  const time = new FakeTime();
  const registry = new BreakerRegistry(
    {
      defaults: {
        fail_max: FAIL_MAX,
        reset_timeout_s: RESET_MS / 1000,
        retry_after_cap_s: CAP_MS / 1000,
        half_open: { trial_calls: PROBES },
      },
      advanced: {
        rolling_window: {
          window_s: ROLLING.windowMs / 1000,
          threshold_failures: ROLLING.threshold,
          cooldown_s: ROLLING.cooldownMs / 1000,
        },
        ramp_up: { max_calls: RAMP_MAX },
        // Growing open times are tested in core; here they would hide other differences.
        adaptive_reset: { enabled: false },
      },
    },
    { time, random: () => 0 },
  );
  const model = new Model();
  const issued: IssuedPermit[] = [];
  for (const step of list) {
    const nowMs = time.monotonicUs() / 1000;
    if (step.do === "allow") allow(registry, model, issued, step, nowMs);
    else if (step.do === "advance") await time.advance(step.ms);
    else if (step.do === "stall") await time.stall(step.ms);
    else if (step.do === "stepWall") time.stepWall(step.ms);
    else if (step.do === "open") {
      registry.open(HOSTS[step.host] as string, step.seconds);
      model.open(step.host, nowMs + step.seconds * 1000);
    } else if (step.do === "close") {
      registry.close(HOSTS[step.host] as string);
      model.close(step.host);
    } else if ("which" in step) end(model, issued, step, nowMs);
    compare(registry, model, time.monotonicUs() / 1000);
  }
  // No circuit is stuck: when all permits are released and enough time has passed, every host allows calls.
  for (const { permit } of issued) permit.release();
  await time.advance(60_000);
  for (const name of HOSTS) for (const role of ROLES) assert.equal(registry.check({ host: name, role }), undefined);
}

function allow(
  registry: BreakerRegistry,
  model: Model,
  issued: IssuedPermit[],
  step: Extract<BreakerStep, { do: "allow" }>,
  nowMs: number,
): void {
  const request = {
    host: HOSTS[step.host] as string,
    role: ROLES[step.role] as "metadata",
    resolver: RESOLVERS[step.resolver],
    timeoutMs: 2000,
  };
  const expected = model.isAllowed(step.host, request.role, request.resolver, nowMs);
  try {
    const permit = registry.allow(request);
    assert.ok(expected, "the registry allows a call that the model denies");
    issued.push({ permit, ...model.pass(step.host, request.role, request.resolver, permit, nowMs) });
  } catch (error) {
    if (!(error instanceof BreakerOpenError)) throw error;
    assert.ok(!expected, "the registry denies a call that the model allows");
  }
}

function end(model: Model, issued: IssuedPermit[], step: Extract<BreakerStep, { which: number }>, nowMs: number): void {
  const [one] = issued.splice(step.which, 1);
  if (one === undefined) return;
  const retryAfterMs = step.do === "fail" ? step.retryAfterMs : undefined;
  if (step.do === "release") one.permit.release();
  else if (step.do === "neutral") one.permit.report({ outcome: { kind: "neutral" } });
  else if (step.do === "answer") one.permit.report({ outcome: { kind: "neutral" }, status: 404 });
  else if (step.do === "succeed") one.permit.report({ outcome: { kind: "success" }, status: 200 });
  else {
    const throttled = retryAfterMs !== undefined;
    one.permit.report({
      outcome: { kind: "failure", cause: "status", throttled },
      status: throttled ? 429 : 503,
      retryAfterMs,
    });
  }
  if (step.do === "succeed") model.succeed(one, nowMs, true);
  else if (step.do === "answer") model.succeed(one, nowMs, false);
  else if (step.do === "fail") model.fail(one, retryAfterMs, nowMs);
  else model.giveBack(one);
}

function compare(registry: BreakerRegistry, model: Model, nowMs: number): void {
  for (const [index, name] of HOSTS.entries()) {
    const status = registry.state(name);
    const expected = model.hosts[index] as ModelHost;
    const remainingCooldownMs = Math.max(0, expected.operatorUntilMs - nowMs, expected.serverUntilMs - nowMs);
    for (const role of status.roles) {
      const circuit = model.advance(expected.circuits[role.role] as ModelCircuit, nowMs);
      assert.equal(role.state, circuit.state);
      assert.equal(role.probes, circuit.state === "half_open" ? circuit.probes.length : 0);
      assert.ok(role.probes <= circuit.maxProbes, "more probes than trial_calls");
      assert.equal(role.failures, circuit.state === "closed" ? Math.max(circuit.failures, circuit.throttles) : 0);
    }
    const openMs = status.roles.map(({ remainingMs }) => remainingMs);
    assert.equal(status.remainingMs, Math.max(remainingCooldownMs, ...openMs));
    assert.equal(status.windowFailures, expected.failuresMs.filter(at => at > nowMs - ROLLING.windowMs).length);
  }
}

class Model {
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
    for (const { circuit, era } of passed) {
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
  return { state: "closed", era: {}, failures: 0, throttles: 0, untilMs: 0, reopened: 0, maxProbes, probes: [] };
}

function setState(circuit: ModelCircuit, state: ModelCircuit["state"]): void {
  circuit.state = state;
  circuit.era = {};
  circuit.failures = 0;
  circuit.throttles = 0;
  circuit.probes = [];
}
