import type { CallResult } from "../core/breaker/call-result.ts";
import { type Circuit, nextAdmissionUs, oldestProbe } from "../core/breaker/circuit.ts";
import { type Outcome, outcomeOfError, outcomeOfResponse, type ResponseFacts } from "../core/breaker/classify.ts";
import type { ClockReading } from "../core/breaker/deadline.ts";
import { canonicalHost } from "../core/text/host.ts";
import { ConfigError } from "../errors.ts";
import type { Listener } from "../listeners.ts";
import { type BreakerPolicies, breakerPoliciesFrom } from "../policy/breaker-policy.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { BreakerSync } from "../sharing/breaker-sync.ts";
import type { PeerBreakers } from "../sharing/peer-breakers.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { BreakerEmitter } from "./breaker-emitter.ts";
import { type BreakerEvent, type CircuitState, stateName } from "./breaker-events.ts";
import { BreakerTable } from "./breaker-table.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import { CooldownStarter } from "./cooldown-starter.ts";
import { Denial } from "./denial.ts";
import { HostBreaker } from "./host-breaker.ts";
import { type HostStatus, hostStatusOf } from "./host-status.ts";
import { type IssuedCall, type PassedCircuit, Permit, type PermitOwner } from "./permit.ts";

export interface BreakerRegistryOptions {
  /** @default the clocks of this machine */
  readonly time?: Time | undefined;
  /** The luck of the draw for jitters, in [0, 1). @default Math.random */
  readonly random?: (() => number) | undefined;
  readonly listener?: Listener<BreakerEvent> | undefined;
}

export interface AllowRequest {
  readonly host: string;
  /** @default "metadata" */
  readonly role?: Role | undefined;
  /** Whose idea the call was, where resolvers have circuits of their own. */
  readonly resolver?: string | undefined;
  /** How long the call may take; a probe's place is held for that and a margin. @default 30_000 */
  readonly timeoutMs?: number | undefined;
}

/** What is known of how a call ended: a response, or an error. */
export interface CallFacts extends Omit<ResponseFacts, "status"> {
  readonly status?: number | undefined;
  readonly error?: unknown;
}

export interface FailureReport extends AllowRequest {
  readonly status?: number | undefined;
  readonly error?: unknown;
  readonly retryAfterS?: number | undefined;
}

const SUCCESS: CallResult = Object.freeze({ outcome: Object.freeze({ kind: "success" }) });
const CLOSED_STATUS = Object.freeze({ state: "closed", remainingMs: 0 });
const DEFAULT_TIMEOUT_MS = 30_000;
const LEASE_MARGIN_MS = 5000;

/**
 * Circuit breakers for hosts, their roles, and resolvers.
 * `allow` hands out a permit; whoever has it reports how the call ended, or releases it. Cooldowns shut a whole host.
 */
export class BreakerRegistry {
  readonly #time: Time;
  readonly #random: () => number;
  readonly #emitter = new BreakerEmitter();
  /** Told directly and not as listeners are: an error in there is ours, and must not become a warning. */
  readonly #onUnblocked = new Set<(blocker: HostBreaker | CircuitHolder) => void>();
  readonly #table: BreakerTable;
  readonly #cooldownStarter: CooldownStarter;
  /** With other processes, where there is a store to share with them. */
  #sync: BreakerSync | undefined;
  /** What a permit may do with this registry, and nobody else. */
  readonly #owner: PermitOwner = {
    settle: (call, result) => this.#settle(call, result),
    release: call => this.#release(call),
  };
  #permitsIssued = 0;

  /** `breakers` has the shape of `breakers.yaml`. Throws a ConfigError that lists everything wrong with it. */
  constructor(
    breakers: BreakersOptions = {},
    { time = systemTime, random = Math.random, listener }: BreakerRegistryOptions = {},
  ) {
    const policies = inMemory(breakers);
    this.#table = new BreakerTable(policies, time, (...change) => this.#changed(...change));
    this.#cooldownStarter = new CooldownStarter(this.#table, time, this.#emitter, (...cooled) =>
      this.#sync?.cooled(...cooled),
    );
    this.#time = time;
    this.#random = random;
    if (listener !== undefined) this.#emitter.add(listener);
  }

  /** A permit, or a BreakerOpenError that says why and for how long. */
  allow(request: AllowRequest): Permit {
    const answer = this.tryAllow(request);
    if (answer instanceof Permit) return answer;
    throw answer.error();
  }

  /** The same as a value: a refusal costs no stack trace. */
  tryAllow(request: AllowRequest): Permit | Denial {
    const { role = "metadata", resolver, timeoutMs = DEFAULT_TIMEOUT_MS } = request;
    if (!(timeoutMs > 0 && timeoutMs < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`timeoutMs must be a finite number above 0, not ${timeoutMs}`);
    }
    const nowUs = this.#time.monotonicUs();
    const host = this.#table.host(request.host);
    host.usedUs = nowUs;
    const circuit = this.#table.circuit(host, role);
    const resolverCircuit = resolver === undefined ? undefined : this.#table.resolver(resolver);
    const denial =
      this.#denial(host, role, circuit, resolverCircuit, nowUs) ??
      this.#peerDenial(host, role, circuit, resolverCircuit, nowUs);
    if (denial?.probeReply !== undefined && !this.#table.policies.isShadow(host.name)) return denial;
    const isShadow = this.#table.policies.isShadow(host.name);
    if (denial !== undefined && isShadow) this.#emitter.shadowed(denial);
    else if (!this.#emitter.isEmpty)
      this.#emitter.beforeCall(host.name, role, resolver, stateName(circuit.at(nowUs)), denial);
    if (denial !== undefined && !isShadow) return denial;
    this.#permitsIssued += 1;
    host.permits += 1;
    const expiresUs = nowUs + (timeoutMs + LEASE_MARGIN_MS) * 1000;
    const passed = this.#enterCircuit(circuit, expiresUs);
    const passedResolver = resolverCircuit && this.#enterCircuit(resolverCircuit, expiresUs);
    const isProbe = passed.isProbe || passedResolver?.isProbe;
    const jitterMs = isProbe ? Math.floor(this.#random() * (this.#table.policies.jitterMs + 1)) : 0;
    return new Permit(
      this.#owner,
      { number: this.#permitsIssued, host, role, circuit: passed, resolver: passedResolver },
      jitterMs,
    );
  }

  /**
   * Makes a call with a permit. One that resolves is a success, one that rejects is judged by its error, and either can
   * say better itself with `permit.report`. Rejects with a BreakerOpenError when there is no permit.
   */
  async run<Result>(request: AllowRequest, call: (permit: Permit) => Promise<Result>): Promise<Result> {
    const permit = this.allow(request);
    try {
      if (permit.jitterMs > 0) await this.#jitter(permit.jitterMs);
      const result = await call(permit);
      permit.report(SUCCESS);
      return result;
    } catch (error) {
      permit.report({ outcome: this.classify({ error }) });
      throw error;
    }
  }

  /** A probe waits a moment, so that a fleet's do not arrive as one. */
  #jitter(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#time.setTimer(ms, resolve);
    return promise;
  }

  /** Why a call would not be allowed now; undefined when it would. Takes nothing. */
  check({ host, role = "metadata", resolver }: AllowRequest): Denial | undefined {
    const known = this.#table.host(host);
    if (this.#table.policies.isShadow(known.name)) return undefined;
    const resolverCircuit = resolver === undefined ? undefined : this.#table.resolver(resolver);
    return this.#denial(known, role, this.#table.circuit(known, role), resolverCircuit, this.#time.monotonicUs());
  }

  /** For callers who keep no permit: the call went well. */
  onSuccess(request: AllowRequest): void {
    this.#reportNow(request, SUCCESS);
  }

  /** For callers who keep no permit: judged by the same rules. */
  onFailure({ status, error, retryAfterS, ...request }: FailureReport): void {
    const retryAfterMs = retryAfterS === undefined ? undefined : retryAfterS * 1000;
    this.#reportNow(request, { outcome: this.classify({ status, error, retryAfterMs }), status, retryAfterMs });
  }

  /** The one judgement (law B4), with this registry's lists. */
  classify(facts: CallFacts): Outcome {
    return facts.status === undefined
      ? outcomeOfError(facts.error)
      : outcomeOfResponse(facts as ResponseFacts, this.#table.policies.rules);
  }

  state(host: string): HostStatus {
    const known = this.#table.find(host);
    return this.#hostStatusOf(known ?? new HostBreaker(canonicalHost(host), this.#time.monotonicUs()));
  }

  /** Its state in brief, for whoever asks with every call: a host that is well costs nothing to look at. */
  briefState(host: string): Pick<HostStatus, "state" | "remainingMs"> {
    const known = this.#table.find(host);
    if (
      known === undefined ||
      (!known.mayHaveCooldown && ROLES.every(role => known.circuits[role]?.isClosed !== false))
    )
      return CLOSED_STATUS;
    return this.#hostStatusOf(known);
  }

  resolverState(resolver: string): CircuitState {
    return stateName(this.#table.resolver(resolver).at(this.#time.monotonicUs()));
  }

  /** Milliseconds until the host may be called again, as far as anybody knows; 0 for now. */
  remainingMs(host: string): number {
    return this.state(host).remainingMs;
  }

  /** Every host that is remembered. */
  *statuses(): IterableIterator<HostStatus> {
    for (const host of this.#table.hosts()) yield this.#hostStatusOf(host);
  }

  /** An operator shuts a host. Only time or an operator opens it again. */
  open(host: string, seconds: number, reason = "operator"): void {
    if (!(seconds > 0)) throw new RangeError(`seconds must be more than 0, not ${seconds}`);
    this.#cooldownStarter.start(this.#table.host(host), seconds * 1000, `cli-open:${reason}`, this.#permitsIssued);
  }

  /** An operator opens a host again: cooldowns, circuits, failures and what was learned of it are cleared. */
  close(host: string): void {
    const known = this.#table.find(host);
    if (known === undefined) return;
    this.#sync?.hostReset(known);
    this.#reset(known);
  }

  #reset(known: HostBreaker): void {
    const wasCooling = known.cooldownAt(this.#time.monotonicUs()) !== undefined;
    known.reset();
    for (const role of ROLES) known.circuits[role]?.close();
    if (wasCooling) this.#emitter.cooldownEnded(known.name, "operator");
    this.#unblocked(known);
  }

  /** From now on these breakers and those of other processes are one. Once, before the first call. */
  join(peerBreakers: PeerBreakers): BreakerSync {
    this.#sync = new BreakerSync(peerBreakers, {
      table: this.#table,
      cooldownStarter: this.#cooldownStarter,
      emitter: this.#emitter,
      time: this.#time,
      lastPermit: () => this.#permitsIssued,
      unblocked: blocker => this.#unblocked(blocker),
      reset: host => this.#reset(host),
    });
    return this.#sync;
  }

  /** Goes on under other numbers: what is open stays open until its time. Throws a ConfigError and changes nothing. */
  reload(breakers: BreakersOptions): void {
    this.#table.reload(inMemory(breakers));
    // More probes may be tried now.
    for (const circuit of this.#table.circuits()) this.#unblocked(circuit);
  }

  /** Answers with the way to stop listening. */
  listen(listener: Listener<BreakerEvent>): () => void {
    return this.#emitter.add(listener);
  }

  /** Hears of whatever was in somebody's way and may no longer be, or for longer; other than by the passing of time. */
  onUnblocked(listener: (blocker: HostBreaker | CircuitHolder) => void): void {
    this.#onUnblocked.add(listener);
  }

  #settle(call: IssuedCall, result: CallResult): void {
    const { outcome, retryAfterMs } = result;
    if (outcome.kind === "neutral") {
      this.#release(call);
      return;
    }
    const { host, circuit, resolver, number } = call;
    host.permits = Math.max(0, host.permits - 1);
    this.#emitter.result(call, result);
    if (outcome.kind === "success") {
      if (host.mayHaveCooldown && host.cooldowns.endBySuccess(number, this.#time.monotonicUs()))
        this.#endedBySuccess(host);
      circuit.holder.succeed(circuit.generation, number);
      resolver?.holder.succeed(resolver.generation, number);
      return;
    }
    const nowUs = this.#time.monotonicUs();
    const isCurrent = circuit.holder.generation === circuit.generation;
    const isEcho = outcome.throttled && host.mayHaveCooldown && host.cooldowns.isBeforeRetryAfter(number, nowUs);
    // A server's own word about when to come back counts whichever generation it answers.
    if (outcome.throttled && retryAfterMs !== undefined && retryAfterMs > 0) {
      this.#cooldownStarter.startForRetryAfter(host, circuit.holder.policy, retryAfterMs, this.#permitsIssued);
    }
    if (isEcho) {
      // It was under way when the host asked for a pause, and says nothing that is not known: a burst is one failure.
      circuit.holder.returnProbe(circuit.generation, number);
      resolver?.holder.returnProbe(resolver.generation, number);
      return;
    }
    circuit.holder.fail(circuit.generation, host.withLearnedReset(circuit.holder.policy), nowUs, this.#random());
    // What one host asks for is no reason to keep a resolver from the others.
    resolver?.holder.fail(resolver.generation, resolver.holder.policy, nowUs, this.#random());
    if (isCurrent) this.#cooldownStarter.countFailure(host, nowUs, this.#permitsIssued);
  }

  #release({ host, circuit, resolver, number }: IssuedCall): void {
    host.permits = Math.max(0, host.permits - 1);
    circuit.holder.returnProbe(circuit.generation, number);
    resolver?.holder.returnProbe(resolver.generation, number);
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

  #denial(
    host: HostBreaker,
    role: Role,
    circuit: CircuitHolder,
    resolver: CircuitHolder | undefined,
    nowUs: number,
  ): Denial | undefined {
    // The way of nearly every call.
    if (!host.mayHaveCooldown && circuit.admits(nowUs) && (resolver === undefined || resolver.admits(nowUs)))
      return undefined;
    const found: Denial[] = [];
    const cooldown = host.cooldownAt(nowUs);
    if (cooldown !== undefined) {
      const { reason, untilUs } = cooldown;
      found.push(new Denial({ host: host.name, role, reason, state: "open", untilUs, blocker: host }, nowUs));
    }
    for (const blocker of [circuit, resolver]) {
      if (blocker === undefined || blocker.admits(nowUs)) continue;
      const at = blocker.at(nowUs);
      const details = { reason: "failures", state: stateName(at), untilUs: nextAdmissionUs(at), blocker } as const;
      found.push(new Denial({ host: host.name, role, ...details }, nowUs));
    }
    // Whatever ends last is what there is to wait for.
    return found.length < 2
      ? found[0]
      : found.reduce((last, denial) => (denial.untilUs > last.untilUs ? denial : last));
  }

  /** What this process would allow as a probe needs the leave of the others. */
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

  #reportNow({ host, role = "metadata", resolver }: AllowRequest, result: CallResult): void {
    const known = this.#table.host(host);
    const nowUs = this.#time.monotonicUs();
    const passed = (holder: CircuitHolder): PassedCircuit => {
      const { generation, kind } = holder.at(nowUs);
      return { holder, generation, isProbe: kind !== "closed" };
    };
    const circuit = passed(this.#table.circuit(known, role));
    const resolverCircuit = resolver === undefined ? undefined : passed(this.#table.resolver(resolver));
    // Which call this was nobody can tell: its probes are taken for the oldest, and it for older than any cooldown.
    const call = { number: 0, host: known, role, circuit, resolver: resolverCircuit };
    const { kind } = result.outcome;
    if (kind !== "failure") this.#returnOldestProbes(circuit, resolverCircuit, nowUs);
    if (kind === "neutral") known.permits = Math.max(0, known.permits - 1);
    else this.#settle(call, result);
  }

  #returnOldestProbes(circuit: PassedCircuit, resolver: PassedCircuit | undefined, nowUs: number): void {
    for (const passed of [circuit, resolver]) {
      passed?.holder.returnProbe(passed.generation, oldestProbe(passed.holder.at(nowUs)));
    }
  }

  #endedBySuccess(host: HostBreaker): void {
    this.#sync?.cooldownEnded(host);
    this.#emitter.cooldownEnded(host.name, "success");
    this.#unblocked(host);
  }

  #changed(holder: CircuitHolder, old: Circuit, isTimeout: boolean): void {
    const now = holder.at(this.#time.monotonicUs());
    this.#sync?.changed(holder, old, now);
    const { host } = holder.name;
    const lastRateDelayMs = host === undefined ? undefined : this.#table.find(host)?.lastRateDelayMs;
    const isFromPeer = this.#sync?.isApplyingPeers ?? false;
    this.#emitter.changed(holder, old, now, { nowUs: this.#time.monotonicUs(), lastRateDelayMs, isFromPeer });
    if (old.kind === "half-open" && now.kind === "closed") this.#recovered(holder);
    // Re-opened, too: who waits for the lease of a probe that has failed would wait too long. What time alone has done
    // nobody need hear: those who wait have timers for it, and whoever asked is in the middle of something.
    if (!isTimeout) this.#unblocked(holder);
  }

  #unblocked(blocker: HostBreaker | CircuitHolder): void {
    for (const listener of this.#onUnblocked) listener(blocker);
  }

  /** A host whose probe came back well has a clean slate: its outage is not held against it once more. */
  #recovered({ name: { host } }: CircuitHolder): void {
    if (host !== undefined) this.#table.find(host)?.clearFailures();
  }

  #hostStatusOf(host: HostBreaker): HostStatus {
    return hostStatusOf(host, this.#clocks(), this.#table.policies.rollingWindow.windowUs);
  }

  #clocks(): ClockReading {
    return { monotonicUs: this.#time.monotonicUs(), wallMs: this.#time.wallMs() };
  }
}

/** Shared cooldowns are the hub's: a registry that was told to share and did not would be worse than none. */
function inMemory(options: BreakersOptions): BreakerPolicies {
  const policies = breakerPoliciesFrom(options, "BreakerRegistry");
  const backend = options.advanced?.cooldown_store?.backend ?? "none";
  if (backend === "none") return policies;
  const message = `a BreakerRegistry keeps its cooldowns in memory, it cannot use ${JSON.stringify(backend)}`;
  throw new ConfigError([{ where: "BreakerRegistry", path: "advanced.cooldown_store.backend", message }]);
}
