import assert from "node:assert/strict";
import { BreakerOpenError } from "../../src/errors.ts";
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import {
  BreakerModel,
  CAP_MS,
  FAIL_MAX,
  HOSTS,
  type IssuedPermit,
  type ModelCircuit,
  type ModelHost,
  PROBES,
  RAMP_MAX,
  RESET_MS,
  RESOLVERS,
  ROLES,
  ROLLING,
} from "./breaker-model.ts";
import type { BreakerStep } from "./breaker-steps.ts";

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
  const model = new BreakerModel();
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
  model: BreakerModel,
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

function end(
  model: BreakerModel,
  issued: IssuedPermit[],
  step: Extract<BreakerStep, { which: number }>,
  nowMs: number,
): void {
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

function compare(registry: BreakerRegistry, model: BreakerModel, nowMs: number): void {
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
