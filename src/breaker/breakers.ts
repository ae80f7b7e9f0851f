import type { CallResult } from "../core/breaker/call-result.ts";
import type { Circuit } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import type { BreakerPolicies } from "../policy/breaker-policy.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { BreakerEmitter } from "./breaker-emitter.ts";
import { stateName } from "./breaker-events.ts";
import { BreakerTable } from "./breaker-table.ts";
import { CallSettler } from "./call-settler.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import { CooldownStarter } from "./cooldown-starter.ts";
import { Denial, denialOf } from "./denial.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { BreakerSyncDeps, PeerSync } from "./peer-sync.ts";
import { type PassedCircuit, Permit } from "./permit.ts";

/** A call that asks for a permit. */
export interface AllowRequest {
  /** The host of the call, in any spelling: it is made canonical (lower case, punycode, no trailing dot). */
  readonly host: string;
  /** What the call is for. Each role of a host has a circuit of its own. @default "metadata" */
  readonly role?: Role | undefined;
  /** The resolver that makes the call. If given, the circuit of that resolver must admit the call too. */
  readonly resolver?: string | undefined;
  /**
   * The longest duration of the call in milliseconds, finite and greater than 0. A trial call that is never reported
   * blocks the half-open circuit for this long plus 5 s.
   * @default 30_000
   */
  readonly timeoutMs?: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const LEASE_MARGIN_MS = 5000;

/** The circuits and cooldowns of one process, and the permits it issues. `BreakerRegistry` is its public form. */
export class Breakers {
  readonly emitter = new BreakerEmitter();
  readonly table: BreakerTable;
  readonly #time: Time;
  readonly #random: () => number;
  /** Not `Listeners`, which turn an exception into a warning: here it would be a defect of this package. */
  readonly #onUnblocked = new Set<(blocker: HostBreaker | CircuitHolder) => void>();
  readonly #cooldownStarter: CooldownStarter;
  readonly #settler: CallSettler;
  /** Undefined when the breakers are not shared with other processes. */
  #sync: PeerSync | undefined;
  #permitsIssued = 0;

  constructor(policies: BreakerPolicies, time: Time, random: () => number) {
    this.#time = time;
    this.#random = random;
    this.table = new BreakerTable(policies, time, (...change) => this.#changed(...change));
    this.#cooldownStarter = new CooldownStarter(this.table, time, this.emitter, (...cooled) =>
      this.#sync?.cooled(...cooled),
    );
    this.#settler = new CallSettler({
      time,
      random,
      emitter: this.emitter,
      cooldownStarter: this.#cooldownStarter,
      lastPermit: () => this.#permitsIssued,
      cooldownEnded: host => this.#endedBySuccess(host),
    });
  }

  tryAllow(request: AllowRequest): Permit | Denial {
    const { role = "metadata", resolver, timeoutMs = DEFAULT_TIMEOUT_MS } = request;
    if (!(timeoutMs > 0 && timeoutMs < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`timeoutMs must be a finite number greater than 0, got ${timeoutMs}`);
    }
    const nowUs = this.#time.monotonicUs();
    const host = this.table.host(request.host);
    host.usedUs = nowUs;
    const circuit = this.table.circuit(host, role);
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    const denial =
      denialOf(host, role, circuit, resolverCircuit, nowUs) ??
      this.#peerDenial(host, role, circuit, resolverCircuit, nowUs);
    const isShadow = this.table.policies.isShadow(host.name);
    // No event before the peers have answered: the call is tried again then.
    if (denial?.probeReply !== undefined && !isShadow) return denial;
    if (denial !== undefined && isShadow) this.emitter.shadowed(denial);
    else if (!this.emitter.isEmpty)
      this.emitter.beforeCall(host.name, role, resolver, stateName(circuit.at(nowUs)), denial);
    if (denial !== undefined && !isShadow) return denial;
    this.#permitsIssued += 1;
    host.permits += 1;
    const expiresUs = nowUs + (timeoutMs + LEASE_MARGIN_MS) * 1000;
    const passed = this.#enterCircuit(circuit, expiresUs);
    const passedResolver = resolverCircuit && this.#enterCircuit(resolverCircuit, expiresUs);
    const isProbe = passed.isProbe || passedResolver?.isProbe;
    const jitterMs = isProbe ? Math.floor(this.#random() * (this.table.policies.jitterMs + 1)) : 0;
    return new Permit(
      this.#settler,
      { number: this.#permitsIssued, host, role, circuit: passed, resolver: passedResolver },
      jitterMs,
    );
  }

  check({ host, role = "metadata", resolver }: AllowRequest): Denial | undefined {
    const known = this.table.host(host);
    if (this.table.policies.isShadow(known.name)) return undefined;
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    return denialOf(known, role, this.table.circuit(known, role), resolverCircuit, this.#time.monotonicUs());
  }

  settleWithoutPermit({ host, role = "metadata", resolver }: AllowRequest, result: CallResult): void {
    const known = this.table.host(host);
    const circuit = this.table.circuit(known, role);
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    this.#settler.settleWithoutPermit(known, role, { circuit, resolver: resolverCircuit }, result);
  }

  startCooldown(host: string, ms: number, reason: OpenReason): void {
    this.#cooldownStarter.start(this.table.host(host), ms, reason, this.#permitsIssued);
  }

  /** Resets a host in this process and in its peers. */
  reset(host: HostBreaker): void {
    this.#sync?.hostReset(host);
    this.#resetLocally(host);
  }

  /** Every circuit keeps its state under the new policies. */
  reload(policies: BreakerPolicies): void {
    this.table.reload(policies);
    // `trial_calls` may be higher now, so that waiting calls can become probes.
    for (const circuit of this.table.circuits()) this.#unblocked(circuit);
  }

  /** Shares these breakers with other processes. To be called once, before the first call is permitted. */
  join<Sync extends PeerSync>(connect: (deps: BreakerSyncDeps) => Sync): Sync {
    const sync = connect({
      table: this.table,
      cooldownStarter: this.#cooldownStarter,
      emitter: this.emitter,
      time: this.#time,
      lastPermit: () => this.#permitsIssued,
      unblocked: blocker => this.#unblocked(blocker),
      reset: host => this.#resetLocally(host),
    });
    this.#sync = sync;
    return sync;
  }

  /**
   * Called when a host or a circuit may admit calls again, or its end has moved. Not called for the end of a timeout.
   */
  onUnblocked(listener: (blocker: HostBreaker | CircuitHolder) => void): void {
    this.#onUnblocked.add(listener);
  }

  #resetLocally(host: HostBreaker): void {
    const wasCooling = host.cooldownAt(this.#time.monotonicUs()) !== undefined;
    host.reset();
    for (const role of ROLES) host.circuits[role]?.close();
    if (wasCooling) this.emitter.cooldownEnded(host.name, "operator");
    this.#unblocked(host);
  }

  #enterCircuit(holder: CircuitHolder, expiresUs: number): PassedCircuit {
    const { generation } = holder;
    const isProbe = !holder.isClosed;
    if (isProbe) {
      this.#sync?.probeSent(holder, this.#permitsIssued);
      holder.sendProbe(this.#permitsIssued, expiresUs);
    }
    return { holder, generation, isProbe };
  }

  /** A probe that this process admits needs the permission of its peers too: they share `trial_calls` (law B2). */
  #peerDenial(
    host: HostBreaker,
    role: Role,
    circuit: CircuitHolder,
    resolver: CircuitHolder | undefined,
    nowUs: number,
  ): Denial | undefined {
    if (this.#sync === undefined) return undefined;
    for (const blocker of [circuit, resolver]) {
      if (blocker === undefined || blocker.isClosed) continue;
      const permission = this.#sync.mayProbe(blocker, nowUs);
      if (permission === true) continue;
      const details = { reason: "failures", state: stateName(blocker.at(nowUs)), blocker, ...permission } as const;
      return new Denial({ host: host.name, role, ...details }, nowUs);
    }
    return undefined;
  }

  #endedBySuccess(host: HostBreaker): void {
    this.#sync?.cooldownEnded(host);
    this.emitter.cooldownEnded(host.name, "success");
    this.#unblocked(host);
  }

  #changed(holder: CircuitHolder, old: Circuit, isTimeout: boolean): void {
    const nowUs = this.#time.monotonicUs();
    const now = holder.at(nowUs);
    this.#sync?.changed(holder, old, now);
    const { host } = holder.name;
    const known = host === undefined ? undefined : this.table.find(host);
    const isFromPeer = this.#sync?.isApplyingPeers ?? false;
    this.emitter.changed(holder, old, now, { nowUs, lastRateDelayMs: known?.lastRateDelayMs, isFromPeer });
    // The failures of an outage that is over must not start a rolling-window cooldown.
    if (old.kind === "half-open" && now.kind === "closed") known?.clearFailures();
    // A circuit that opens again unblocks too: a call that waits for the lease of the failed probe would wait too long.
    // A change caused by a timeout unblocks nothing: waiting calls have their own timers, and the caller that noticed
    // the timeout is in the middle of its own decision.
    if (!isTimeout) this.#unblocked(holder);
  }

  #unblocked(blocker: HostBreaker | CircuitHolder): void {
    for (const listener of this.#onUnblocked) listener(blocker);
  }
}
