import { type CallResult, failureText } from "../core/breaker/call-result.ts";
import type { CircuitPolicy, FailureKind } from "../core/breaker/circuit.ts";
import type { Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { BreakerChange } from "./breaker-change.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import { type CallOwners, rampUpsOf } from "./breaker-table.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { CooldownStarter } from "./cooldowns.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { IssuedCall, PassedCircuit, PermitOwner } from "./permit.ts";
import type { RampUps } from "./ramp-up.ts";

export interface CallSettlerDeps {
  readonly time: Time;
  readonly random: () => number;
  readonly emitter: BreakerEmitter;
  readonly cooldownStarter: CooldownStarter;
  /** The number of the permit that was issued last. */
  readonly lastPermit: () => number;
  readonly endCooldown: (host: HostBreaker) => void;
  readonly rampUps: RampUps;
  readonly record: (change: BreakerChange) => void;
}

/** Applies the result of a call to its host, its circuit and the circuit of its resolver (laws B2 to B6). */
export class CallSettler implements PermitOwner {
  readonly #deps: CallSettlerDeps;

  constructor(deps: CallSettlerDeps) {
    this.#deps = deps;
  }

  settle(call: IssuedCall, result: CallResult): void {
    const { outcome, status } = result;
    if (outcome.kind === "neutral") {
      // Without a status there was no answer: the call says nothing about the host.
      if (status === undefined) this.release(call);
      else this.#settleNeutral(call);
      return;
    }
    endPermit(call);
    if (outcome.kind === "success") this.#succeed(call, result);
    else {
      const { throttled: isThrottled, unreached: isUnreached = false } = outcome;
      this.#fail(call, result, { isThrottled, isUnreached, text: failureText(result) });
    }
  }

  release(call: IssuedCall): void {
    endPermit(call);
    returnProbes(call);
    this.#deps.rampUps.left(call);
  }

  responseBegan(call: IssuedCall): void {
    const { cooldownHost, latency } = call;
    this.#deps.rampUps.answered(call);
    if (latency === undefined || latency.isCounted) return;
    latency.isCounted = true;
    const { time, cooldownStarter, lastPermit } = this.#deps;
    const nowUs = time.monotonicUs();
    cooldownStarter.countLatency(cooldownHost, nowUs - latency.sentUs, nowUs, lastPermit());
  }

  /**
   * A result that was reported without a permit. The call cannot be identified: it counts as the oldest probe in
   * flight, and as older than every cooldown.
   */
  settleWithoutPermit(
    owners: CallOwners,
    role: Role,
    circuits: { readonly circuit: CircuitHolder; readonly resolver: CircuitHolder | undefined },
    result: CallResult,
  ): void {
    const nowUs = this.#deps.time.monotonicUs();
    const circuit = passedAt(circuits.circuit, nowUs);
    const resolver = circuits.resolver && passedAt(circuits.resolver, nowUs);
    const { circuit: host, cooldown: cooldownHost } = owners;
    const rampUps = rampUpsOf(owners, role);
    this.settle({ number: 0, host, cooldownHost, role, circuit, resolver, latency: undefined, rampUps }, result);
  }

  #succeed(call: IssuedCall, result: CallResult): void {
    const { cooldownHost, circuit, resolver, number } = call;
    const { time, emitter, endCooldown } = this.#deps;
    if (emitter.hasListener("breaker_success"))
      // Time does not change a closed circuit, so that the clock need not be read.
      emitter.succeeded(call, result, circuit.holder.at(circuit.holder.isClosed ? 0 : time.monotonicUs()));
    this.responseBegan(call);
    if (cooldownHost.mayHaveCooldown && cooldownHost.cooldowns.endBySuccess(number, time.monotonicUs()))
      endCooldown(cooldownHost);
    this.#succeedAt(circuit, number);
    if (resolver !== undefined) this.#succeedAt(resolver, number);
  }

  #succeedAt({ holder, generation }: PassedCircuit, number: number): void {
    if (holder.hasSharedFailures && holder.generation === generation) {
      // Reset at once, so that only one success is recorded. The next record with failures sets `hasSharedFailures` again.
      holder.hasSharedFailures = false;
      this.#deps.record({ kind: "success", origin: "local", blocker: holder });
    }
    holder.succeed(generation, number);
  }

  /** An answer that is neither a success nor a failure (404), complete or aborted by the caller: the host is alive (law B9). */
  #settleNeutral(call: IssuedCall): void {
    const { circuit, resolver, number } = call;
    endPermit(call);
    this.responseBegan(call);
    circuit.holder.answer(circuit.generation, number);
    resolver?.holder.answer(resolver.generation, number);
  }

  #fail(call: IssuedCall, result: CallResult, kind: FailureKind): void {
    const { isThrottled } = kind;
    const { time, emitter, cooldownStarter, lastPermit } = this.#deps;
    const { cooldownHost, circuit, resolver } = call;
    const nowUs = time.monotonicUs();
    call.host.usedUs = nowUs;
    cooldownHost.usedUs = nowUs;
    // All throttles of requests that were in flight together are one event (law B10).
    const isRepeated = isThrottled && this.#isRepeated(call, nowUs);
    const cooldownMs = isThrottled ? cooldownStarter.retryAfterCooldownMs(call, result.retryAfterMs) : undefined;
    if (emitter.hasListener("breaker_failure"))
      emitter.failed(call, result, { at: circuit.holder.at(nowUs), isRepeated, cooldownMs });
    this.#deps.rampUps.failed(call);
    const isCurrent = circuit.holder.generation === circuit.generation;
    // A Retry-After counts even if the circuit has changed state since the call was sent.
    if (cooldownMs !== undefined) cooldownStarter.startForRetryAfter(call, cooldownMs, lastPermit(), isRepeated);
    if (isRepeated) {
      returnProbes(call);
      return;
    }
    if (isThrottled) cooldownHost.countThrottle(lastPermit());
    const policy = cooldownHost.withLearnedReset(circuit.holder.policy);
    this.#failAt(circuit, policy, kind, nowUs);
    if (resolver !== undefined) this.#failResolver(resolver, call.number, kind, nowUs);
    if (isCurrent) cooldownStarter.countFailure(cooldownHost, nowUs, lastPermit(), kind);
  }

  /** Throttles of several hosts that were in flight together are one event for their resolver too (law B10). */
  #failResolver(resolver: PassedCircuit, number: number, kind: FailureKind, nowUs: number): void {
    const { holder, generation } = resolver;
    if (kind.isThrottled && holder.isThrottleCounted(number)) {
      holder.returnProbe(generation, number);
      return;
    }
    if (kind.isThrottled) holder.countThrottle(this.#deps.lastPermit());
    // The reset learned from one host does not apply to a resolver, which calls other hosts too.
    this.#failAt(resolver, holder.policy, kind, nowUs);
  }

  #failAt({ holder, generation }: PassedCircuit, policy: CircuitPolicy, failure: FailureKind, nowUs: number): void {
    const wasClosed = holder.isClosed;
    const isCurrent = holder.generation === generation;
    holder.fail(generation, policy, nowUs, this.#deps.random(), failure);
    // If a trial call reached the host and failed, its failure is not shared, but that the circuit is open again.
    if (!isCurrent || !(wasClosed || failure.isUnreached)) return;
    // The record of a circuit that is open for all processes has no failures.
    holder.hasSharedFailures = holder.isClosed || holder.isLocalOnly;
    if (!holder.hasSharedFailures) return;
    const now = holder.at(nowUs);
    const resetUs = !wasClosed && now.kind === "open" ? now.untilUs - nowUs : policy.resetUs;
    const { failMax } = policy;
    this.#deps.record({ kind: "failure", origin: "local", blocker: holder, failure, policy: { failMax, resetUs } });
  }

  /** Whether the call was in flight when the host last throttled a call, here or in another process. */
  #isRepeated({ cooldownHost, number }: IssuedCall, nowUs: number): boolean {
    if (cooldownHost.isThrottleCounted(number)) return true;
    return cooldownHost.mayHaveCooldown && cooldownHost.cooldowns.isBeforeRetryAfter(number, nowUs);
  }
}

/** Never below 0: some reports have no permit. */
function endPermit({ host, cooldownHost }: Pick<IssuedCall, "host" | "cooldownHost">): void {
  host.permits = Math.max(0, host.permits - 1);
  if (cooldownHost !== host) cooldownHost.permits = Math.max(0, cooldownHost.permits - 1);
}

function returnProbes({ circuit, resolver, number }: IssuedCall): void {
  circuit.holder.returnProbe(circuit.generation, number);
  resolver?.holder.returnProbe(resolver.generation, number);
}

function passedAt(holder: CircuitHolder, nowUs: number): PassedCircuit {
  const { generation, kind } = holder.at(nowUs);
  return { holder, generation, isProbe: kind !== "closed" };
}
