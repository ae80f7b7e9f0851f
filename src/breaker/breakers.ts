import type { CallResult } from "../core/breaker/call-result.ts";
import type { Circuit } from "../core/breaker/circuit.ts";
import type { ThrottleRule } from "../core/breaker/throttle-rule.ts";
import type { Constraint } from "../errors.ts";
import type { BreakerPolicies } from "../policy/breaker-policy.ts";
import { commonName, nameWithoutPartition } from "../policy/partition-name.ts";
import type { Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { BreakerChange, ChangeOrigin, ProbePermissions } from "./breaker-change.ts";
import { BreakerEmitter } from "./breaker-emitter.ts";
import { allOwners, BreakerTable, type CallOwners, rampUpsOf } from "./breaker-table.ts";
import { CallSettler } from "./call-settler.ts";
import { type CircuitHolder, stateName } from "./circuit-holder.ts";
import { CooldownEvents } from "./cooldown-events.ts";
import { CooldownStarter, reasonText } from "./cooldowns.ts";
import { type Denial, denialOf, holdDenialOf, isStopped, mayHaveCooldown, probeDenialOf } from "./denial.ts";
import { HostBreaker } from "./host-breaker.ts";
import { type OrderRequest, Orders, type OrderTarget } from "./orders.ts";
import { type IssuedCall, type PassedCircuit, Permit, type PermitOwner } from "./permit.ts";
import { NO_RAMP_UPS, type RampUp, RampUps } from "./ramp-up.ts";
import { type PeerRecord, RecordApplier } from "./record-applier.ts";

/** A call that asks for a permit. */
export interface AllowRequest {
  /** The host of the call, in any spelling: it is made canonical (lower case, punycode, no trailing dot). */
  readonly host: string;
  /** The path of the URL. Needed only for hosts that a policy splits by path. @default the whole host */
  readonly path?: string | undefined;
  /**
   * The tenant or API key of the call. Hosts with `per: partition` in the policy have circuits and cooldowns for each.
   * @default none
   */
  readonly partition?: string | undefined;
  /** What the call is for. Each role of a host has a circuit of its own. @default "metadata" */
  readonly role?: Role | undefined;
  /** The resolver that makes the call. If given, the circuit of that resolver must admit the call too. */
  readonly resolver?: string | undefined;
  /**
   * The longest duration of the call in milliseconds, finite and greater than 0. A trial call that is never reported
   * blocks the half-open circuit for this long plus 5 s, and at most for a day.
   * @default 30_000
   */
  readonly timeoutMs?: number | undefined;
}

/** A request, and the hosts, services and circuits that decide about it. */
interface CheckedRequest {
  readonly owners: CallOwners;
  readonly role: Role;
  readonly circuit: CircuitHolder;
  readonly resolverCircuit: CircuitHolder | undefined;
  readonly leaseUs: number;
}

/** A host or service that an operator holds. */
export interface HeldOwner {
  readonly target: string;
  readonly reason: string;
  readonly remainingMs: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const LEASE_MARGIN_MS = 5000;
/** With a lease of thousands of years, its end is beyond the range of the numbers that stores keep. */
const LEASE_MAX_MS = 86_400_000;
const NO_CHANGES: readonly BreakerChange[] = [];

/**
 * The circuits and cooldowns of one process, and the permits it issues. `BreakerRegistry` is its public form.
 * It knows neither waiting calls nor peers: it keeps its changes for the gate, which has both.
 */
export class Breakers implements PermitOwner {
  readonly emitter = new BreakerEmitter();
  readonly table: BreakerTable;
  /** The setting behind a denial, for events. */
  explain: ((constraint: Constraint, request: AllowRequest) => string) | undefined;
  readonly #time: Time;
  readonly #random: () => number;
  readonly #cooldownEvents: CooldownEvents;
  readonly #orders: Orders;
  readonly #rampUps: RampUps;
  readonly #settler: CallSettler;
  readonly #applier: RecordApplier;
  /** Changes that the gate has not taken yet. Empty if no gate watches. */
  readonly #changes: BreakerChange[] = [];
  #wake: (() => void) | undefined;
  #permitsIssued = 0;

  constructor(policies: BreakerPolicies, time: Time, random: () => number) {
    this.#time = time;
    this.#random = random;
    const { emitter } = this;
    const cooldownEvents = new CooldownEvents(emitter, time);
    this.#cooldownEvents = cooldownEvents;
    const table = new BreakerTable(policies, time, (...change) => this.#changed(...change));
    const record = (change: BreakerChange) => this.#record(change);
    const rampUps = new RampUps(table, time, record);
    const cooldownStarter = new CooldownStarter(table, time, emitter, cooldownEvents, rampUps, record);
    const lastPermit = () => this.#permitsIssued;
    this.table = table;
    this.#rampUps = rampUps;
    this.#orders = new Orders({ table, time, emitter, cooldownEvents, rampUps, lastPermit, record });
    this.#settler = new CallSettler({
      time,
      random,
      emitter,
      cooldownStarter,
      lastPermit,
      endCooldown: host => this.#endCooldown(host, "local"),
      rampUps,
      record,
    });
    this.#applier = new RecordApplier({
      time,
      table,
      cooldownStarter,
      lastPermit,
      endCooldown: host => this.#endCooldown(host, "peer"),
      orders: this.#orders,
    });
  }

  /**
   * From now on changes are kept until `takeChanges`, and `wake` is called at the end of each step that made changes.
   * Changes caused by a timeout do not call `wake`, because the gate itself finds them when it decides about a call.
   */
  watch(wake: () => void): void {
    this.#wake = wake;
  }

  takeChanges(): readonly BreakerChange[] {
    return this.#changes.length === 0 ? NO_CHANGES : this.#changes.splice(0);
  }

  /** With `probes`, a probe that this process admits needs the permission of its peers too (law B2). */
  tryAllow(request: AllowRequest, probes?: ProbePermissions): Permit | Denial {
    const { role = "metadata", resolver, timeoutMs = DEFAULT_TIMEOUT_MS } = request;
    const leaseUs = leaseUsOf(timeoutMs);
    const owners = this.table.ownersOf(request.host, request.path, request.partition);
    const circuit = this.table.circuit(owners.circuit, role);
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    const isPlain =
      !mayHaveCooldown(owners) && circuit.isFresh && (resolverCircuit === undefined || resolverCircuit.isFresh);
    return isPlain && this.table.policies.rollingWindow.slowCalls === undefined
      ? this.#allowPlain(owners, role, circuit, resolverCircuit)
      : this.#allow(request, { owners, role, circuit, resolverCircuit, leaseUs }, probes);
  }

  /** Nothing can deny the call. Nearly every call ends here, and does not even read the clock. */
  #allowPlain(owners: CallOwners, role: Role, circuit: CircuitHolder, resolver: CircuitHolder | undefined): Permit {
    const { circuit: host, cooldown } = owners;
    host.usedUs = undefined;
    cooldown.usedUs = undefined;
    if (this.emitter.hasListener("breaker_before_call"))
      this.emitter.beforeCall(host.name, role, resolver?.name.resolver, "closed", undefined);
    const number = this.#countPermit(owners);
    return new Permit(this, number, owners, role, circuit.passed, resolver?.passed, undefined, NO_RAMP_UPS, 0);
  }

  #allow(
    request: AllowRequest,
    { owners, role, circuit, resolverCircuit, leaseUs }: CheckedRequest,
    probes: ProbePermissions | undefined,
  ): Permit | Denial {
    const nowUs = this.#time.monotonicUs();
    const { circuit: host, cooldown: cooldownHost } = owners;
    host.usedUs = nowUs;
    cooldownHost.usedUs = nowUs;
    const { isShadow } = owners;
    const held = isShadow ? holdDenialOf(owners, role, nowUs) : undefined;
    if (held !== undefined) return held;
    const denial =
      denialOf(owners, role, circuit, resolverCircuit, nowUs) ??
      (probes && probeDenialOf(probes, host, role, [circuit, resolverCircuit], nowUs, leaseUs));
    // No event before the peers have answered: the call is tried again then.
    if (denial?.isProbePending && !isShadow) return denial;
    if (denial !== undefined && isShadow) {
      if (this.emitter.hasListener("breaker_shadow"))
        this.emitter.shadowed(denial, this.explain?.(denial.constraint, request));
    } else if (this.emitter.hasListener("breaker_before_call"))
      this.emitter.beforeCall(host.name, role, request.resolver, stateName(circuit.at(nowUs)), denial);
    if (denial !== undefined && !isShadow) return denial;
    // A listener may have taken the only trial call, or opened the circuit.
    const since = isShadow ? undefined : denialOf(owners, role, circuit, resolverCircuit, nowUs);
    if (since !== undefined) return since;
    const number = this.#countPermit(owners);
    const expiresUs = nowUs + leaseUs;
    const passed = this.#enterCircuit(circuit, nowUs, expiresUs, probes);
    const passedResolver = resolverCircuit && this.#enterCircuit(resolverCircuit, nowUs, expiresUs, probes);
    const rampUps = isShadow || !mayHaveCooldown(owners) ? NO_RAMP_UPS : rampUpsOf(owners, role);
    const isTrial = passed.isProbe || passedResolver?.isProbe || hasTrial(rampUps);
    for (const rampUp of rampUps) rampUp.enter({ id: number, sentUs: nowUs, expiresUs });
    const jitterMs = isTrial ? Math.floor(this.#random() * (this.table.policies.jitterMs + 1)) : 0;
    const isTimed = this.table.policies.rollingWindow.slowCalls !== undefined;
    const latency = isTimed ? { sentUs: nowUs + jitterMs * 1000, isCounted: false } : undefined;
    return new Permit(this, number, owners, role, passed, passedResolver, latency, rampUps, jitterMs);
  }

  /** The number of the permit that is issued now. */
  #countPermit({ circuit: host, cooldown }: CallOwners): number {
    this.#permitsIssued += 1;
    host.permits += 1;
    if (cooldown !== host) cooldown.permits += 1;
    return this.#permitsIssued;
  }

  /** Whether a circuit or cooldown of these hosts, services and resolvers may deny the call. Cheaper than `check`. */
  isDecidedBy({ host, path, partition, resolver }: AllowRequest, names: ReadonlySet<string>): boolean {
    if (resolver !== undefined && names.has(resolver)) return true;
    return allOwners(this.table.ownersOf(host, path, partition)).some(({ name }) => names.has(name));
  }

  /** With `probes`, the peers are asked for their permission to probe if the request would need it. */
  check(
    { host, path, partition, role = "metadata", resolver, timeoutMs = DEFAULT_TIMEOUT_MS }: AllowRequest,
    probes?: ProbePermissions,
  ): Denial | undefined {
    const owners = this.table.ownersOf(host, path, partition);
    const nowUs = this.#time.monotonicUs();
    if (owners.isShadow) return holdDenialOf(owners, role, nowUs);
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    const circuit = this.table.circuit(owners.circuit, role);
    return (
      denialOf(owners, role, circuit, resolverCircuit, nowUs) ??
      (probes && probeDenialOf(probes, owners.circuit, role, [circuit, resolverCircuit], nowUs, leaseUsOf(timeoutMs)))
    );
  }

  /** Whether a trial call that waits for its jitter must not be sent: a cooldown or an order has begun meanwhile. */
  isStopped({ host, path, partition, role = "metadata", resolver }: AllowRequest): boolean {
    const owners = this.table.ownersOf(host, path, partition);
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    const circuits = [this.table.circuit(owners.circuit, role), resolverCircuit];
    return isStopped(owners, role, circuits, this.#time.monotonicUs());
  }

  /** The rules that recognise throttles in the responses of a request. */
  throttleRules(host: string, path?: string): readonly ThrottleRule[] {
    const { policies } = this.table;
    return policies.throttleRules(policies.route(host, path).circuit);
  }

  /**
   * Why a call of this key in this role would be denied, for tables: by the key itself, or by the service or host that
   * its calls belong to. Undefined for a key without state.
   */
  denialOfKey(key: string, role: Role): Denial | undefined {
    const { table } = this;
    const { names, circuit: circuitName, former } = table.ownerNamesOfKey(key);
    const known = names.flatMap(name => table.get(name) ?? []);
    if (known.length === 0 && former.length === 0) return undefined;
    const nowUs = this.#time.monotonicUs();
    const isShadow = table.policies.isShadow(commonName(circuitName));
    const isPartition = nameWithoutPartition(circuitName) !== undefined;
    const own = known.filter(({ name }) => !isPartition || nameWithoutPartition(name) !== undefined);
    const circuit = own.find(({ name }) => name === circuitName) ?? new HostBreaker(circuitName);
    const [cooldown = circuit, host, ...others] = own.filter(owner => owner !== circuit);
    // For a partition, only operators' orders for its host or service without the partition apply.
    const common = [...others, ...known.filter(owner => !own.includes(owner))];
    const owners = { circuit, cooldown, host, common, former, isShadow };
    if (isShadow) return holdDenialOf(owners, role, nowUs);
    return denialOf(owners, role, table.get(circuitName)?.circuits[role], undefined, nowUs);
  }

  /** The hosts and services that an operator holds in this role, for tables. */
  holds(role: Role): readonly HeldOwner[] {
    const nowUs = this.#time.monotonicUs();
    return Array.from(this.table.hosts()).flatMap(owner => {
      const hold = owner.holdAt(role, nowUs);
      if (hold === undefined) return [];
      const remainingMs = Math.ceil((hold.untilUs - nowUs) / 1000);
      return [{ target: owner.name, reason: reasonText(hold.reason), remainingMs }];
    });
  }

  settle(call: IssuedCall, result: CallResult): void {
    this.#settler.settle(call, result);
    this.#wakeIfChanged();
  }

  release(call: IssuedCall): void {
    this.#settler.release(call);
    this.#wakeIfChanged();
  }

  responseBegan(call: IssuedCall): void {
    this.#settler.responseBegan(call);
    this.#wakeIfChanged();
  }

  settleWithoutPermit(request: AllowRequest, result: CallResult): void {
    const { host, path, partition, role = "metadata", resolver } = request;
    const owners = this.table.ownersOf(host, path, partition);
    const circuit = this.table.circuit(owners.circuit, role);
    const resolverCircuit = resolver === undefined ? undefined : this.table.resolver(resolver);
    this.#settler.settleWithoutPermit(owners, role, { circuit, resolver: resolverCircuit }, result);
    this.#wakeIfChanged();
  }

  /** Applies an operator's order. An order for a host or service, or for one role of it, applies to all its partitions. */
  giveOrder(target: OrderTarget, order: OrderRequest): void {
    this.#orders.give(target, order);
    this.#wakeIfChanged();
  }

  /** Applies what the peers know about a host or a resolver. */
  applyRecord(record: PeerRecord): void {
    this.#applier.apply(record);
    this.#wakeIfChanged();
  }

  /** Every circuit keeps its state under the new policies. */
  reload(policies: BreakerPolicies): void {
    this.table.reload(policies);
    for (const blocker of this.table.circuits()) this.#record({ kind: "policy", origin: "local", blocker });
    if (!policies.hasRampUp) {
      for (const host of this.table.hosts()) this.#rampUps.end(host);
    }
    this.#wakeIfChanged();
  }

  #enterCircuit(
    holder: CircuitHolder,
    nowUs: number,
    expiresUs: number,
    probes: ProbePermissions | undefined,
  ): PassedCircuit {
    if (holder.isClosed) return holder.passed;
    const { generation } = holder;
    probes?.useProbe(holder, this.#permitsIssued);
    holder.sendProbe({ id: this.#permitsIssued, sentUs: nowUs, expiresUs });
    return { holder, generation, isProbe: true };
  }

  #endCooldown(host: HostBreaker, origin: ChangeOrigin): void {
    this.#record({ kind: "cooldown-ended", origin, blocker: host });
    this.#cooldownEvents.ended(host, "success");
  }

  #changed(holder: CircuitHolder, old: Circuit, origin: ChangeOrigin): void {
    const nowUs = this.#time.monotonicUs();
    const now = holder.at(nowUs);
    this.#record({ kind: "circuit", origin, blocker: holder, old, now });
    const { host } = holder.name;
    const known = host === undefined ? undefined : this.table.find(host);
    this.emitter.changed(holder, old, now, { nowUs, lastRateDelayMs: known?.lastRateDelayMs, origin });
    // The failures of an outage that is over must not start a rolling-window cooldown.
    if (host !== undefined && old.kind === "half-open" && now.kind === "closed")
      this.table.cooldownOwnerOf(host)?.clearFailures();
  }

  #record(change: BreakerChange): void {
    if (this.#wake !== undefined) this.#changes.push(change);
  }

  #wakeIfChanged(): void {
    if (this.#changes.length > 0 && this.#changes.some(({ origin }) => origin !== "timeout")) this.#wake?.();
  }
}

/** How long a call that is never reported counts as in flight. Throws a RangeError for an invalid time limit. */
function leaseUsOf(timeoutMs: number): number {
  if (!(timeoutMs > 0 && timeoutMs < Number.POSITIVE_INFINITY))
    throw new RangeError(`timeoutMs must be a finite number greater than 0, got ${timeoutMs}`);
  return Math.min(timeoutMs + LEASE_MARGIN_MS, LEASE_MAX_MS) * 1000;
}

function hasTrial(rampUps: readonly RampUp[]): boolean {
  return rampUps.length > 0 && rampUps.some(rampUp => rampUp.isTrial);
}
