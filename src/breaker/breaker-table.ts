import { longestOpenUs } from "../core/breaker/circuit.ts";
import { EvictingMap } from "../core/evicting-map.ts";
import type { BreakerPolicies, BreakerRoute } from "../policy/breaker-policy.ts";
import { commonName, nameWithoutPartition, partitionName } from "../policy/partition-name.ts";
import { isRole, ROLES, type Role, unknownRoleMessage } from "../policy/roles.ts";
import { canonicalUnit, isServiceName, withoutTier } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import { CircuitHolder, type OnCircuitChange } from "./circuit-holder.ts";
import { FormerOwners } from "./former-owners.ts";
import { HostBreaker } from "./host-breaker.ts";
import { NO_RAMP_UPS, type RampUp } from "./ramp-up.ts";

/** The parts of a call that decide which breakers it passes. */
export interface PartitionedCall {
  readonly host: string;
  readonly path?: string | undefined;
  readonly partition?: string | undefined;
}

/** A host without failures could be evicted at once. Keeping this many avoids building it again for each call. */
const KEPT_HOSTS = 16_384;
const KEPT_RESOLVERS = 1024;

/**
 * The hosts, services and resolvers of a process, created on first use. They are evicted when their state is that of a
 * new one (law L11). Hosts are also evicted when unused for an hour.
 */
export class BreakerTable {
  #policies: BreakerPolicies;
  readonly #time: Time;
  readonly #onChange: OnCircuitChange;
  /** The owners before a reload that still deny calls, although the reload has given these calls other owners. */
  readonly former = new FormerOwners();
  readonly #hosts: EvictingMap<HostBreaker>;
  #hasPartitions = false;
  /** The last call and its owners. */
  #last: { readonly text: string; readonly path: string | undefined; readonly owners: CallOwners } | undefined;
  readonly #resolvers = new EvictingMap<CircuitHolder>(circuit => circuit.isFresh, KEPT_RESOLVERS);

  constructor(policies: BreakerPolicies, time: Time, onChange: OnCircuitChange) {
    this.#policies = policies;
    this.#time = time;
    this.#onChange = onChange;
    const isEvictable = (host: HostBreaker) =>
      host.isEvictable(time.monotonicUs(), this.#policies.rollingWindow.windowUs);
    this.#hosts = new EvictingMap(isEvictable, KEPT_HOSTS);
  }

  get policies(): BreakerPolicies {
    return this.#policies;
  }

  hosts(): Iterable<HostBreaker> {
    return this.#hosts.values();
  }

  *circuits(): IterableIterator<CircuitHolder> {
    for (const { circuits } of this.#hosts.values()) {
      for (const role of ROLES) if (circuits[role] !== undefined) yield circuits[role];
    }
    yield* this.#resolvers.values();
  }

  /** A host, service or partition in the table, by its canonical name. */
  get(name: string): HostBreaker | undefined {
    return this.#hosts.get(name);
  }

  /** A host or service in the table, by any spelling of its name. Throws a RangeError for a text that is neither. */
  find(text: string): HostBreaker | undefined {
    // The keys are canonical, so a text that is found as it stands need not be parsed.
    return this.#hosts.get(text) ?? this.#hosts.get(canonicalName(text));
  }

  host(text: string): HostBreaker {
    return this.find(text) ?? this.#add(canonicalName(text));
  }

  /** The hosts and services that decide about a call, created on first use. */
  ownersOf(text: string, path?: string, partition?: string): CallOwners {
    if (partition !== undefined) return this.#findOwners(text, path, partition);
    const sole = this.#hosts.get(text)?.soleOwners;
    if (sole !== undefined) return sole;
    // Calls to one host often follow each other. `#last` is cleared by a reload, and when a host is added, because that
    // may evict another one.
    const last = this.#last;
    if (last !== undefined && last.text === text && last.path === path) return last.owners;
    const owners = this.#findOwners(text, path, undefined);
    // Former owners are looked up for each call, until their state is over.
    if (owners.former.length === 0) this.#last = { text, path, owners };
    return owners;
  }

  #findOwners(text: string, path: string | undefined, partition: string | undefined): CallOwners {
    const route = this.#policies.route(text, path);
    const { host, circuit: circuitName, cooldown: cooldownName } = route;
    const former = this.#formerOf(text, path, partition);
    if (partition !== undefined && this.#policies.isPerPartition(circuitName))
      return this.#partitionOwnersOf(route, partition, former);
    const { circuit, cooldown } = this.#ownersNamed(circuitName, cooldownName);
    const isOwner = host === circuitName || host === cooldownName;
    const isShadow = this.#policies.isShadow(circuitName);
    const own = isOwner ? undefined : this.#hosts.get(host);
    const owners = { circuit, cooldown, host: own, common: NO_HOSTS, former, isShadow };
    const isSole = circuit === cooldown && host === circuitName && !this.#policies.hasPaths(text);
    // Owners without former ones can be cached: a former owner whose state is over never denies a call again.
    const mayHaveFormer = former.length > 0 || partition !== undefined || this.former.hasPaths(text);
    if (isSole && (this.former.isEmpty || !mayHaveFormer)) circuit.soleOwners = owners;
    return owners;
  }

  /** The owners before a reload that still deny the call. */
  #formerOf(host: string, path: string | undefined, partition: string | undefined): readonly HostBreaker[] {
    if (this.former.isEmpty) return NO_HOSTS;
    const suffix = partition === undefined ? "" : partitionName("", partition);
    return this.former.of({ host, path, suffix }, this.#policies, this.#time.monotonicUs());
  }

  #partitionOwnersOf(
    { host, circuit, cooldown }: BreakerRoute,
    partition: string,
    former: readonly HostBreaker[],
  ): CallOwners {
    const common = [...new Set([host, circuit, cooldown])].flatMap(name => this.#hosts.get(name) ?? []);
    const isShadow = this.#policies.isShadow(circuit);
    const own = this.#ownersNamed(partitionName(circuit, partition), partitionName(cooldown, partition));
    return { ...own, host: undefined, common, former, isShadow };
  }

  /** The owners with these canonical names, created on first use. */
  #ownersNamed(circuitName: string, cooldownName: string): Pick<CallOwners, "circuit" | "cooldown"> {
    const circuit = this.#hosts.get(circuitName) ?? this.#add(circuitName);
    if (cooldownName === circuitName) return { circuit, cooldown: circuit };
    const cooldown = this.#hosts.get(cooldownName) ?? this.#add(cooldownName);
    // Adding the second may have evicted the first. Its calls would be counted on a host that is not in the table.
    if (this.#hosts.get(circuitName) === undefined) this.#hosts.restore(circuitName, circuit);
    return { circuit, cooldown };
  }

  /** The names of everything that may deny a call, except its resolver. */
  ownerNamesOf({ host: text, path, partition }: PartitionedCall): readonly string[] {
    const { host, circuit, cooldown } = this.#policies.route(text, path);
    const names = [host];
    if (circuit !== host) names.push(circuit);
    if (cooldown !== host && cooldown !== circuit) names.push(cooldown);
    if (partition !== undefined && this.#policies.isPerPartition(circuit)) {
      names.push(partitionName(circuit, partition));
      if (cooldown !== circuit) names.push(partitionName(cooldown, partition));
    }
    return names;
  }

  /**
   * For a rate-limit key. `names`: the key without its tier, then the hosts and services that decide about its calls.
   * `circuit`: the host or service with the circuits of its calls. A key may have a tier or a partition, or be a host
   * of a service with `per_host`.
   */
  ownerNamesOfKey(key: string): {
    readonly names: readonly string[];
    readonly circuit: string;
    readonly former: readonly HostBreaker[];
  } {
    const partition = key.slice(commonName(key).length);
    const common = withoutTier(commonName(key));
    const colon = isServiceName(common) ? common.indexOf(":") : -1;
    const inPartition = (name: string) => (this.#policies.isPerPartition(name) ? `${name}${partition}` : name);
    if (isServiceName(common) && colon < 0)
      return { names: [...new Set([`${common}${partition}`, common])], circuit: inPartition(common), former: [] };
    const [text = "", ...parts] = common.slice(colon + 1).split("/");
    const path = parts.length === 0 ? undefined : `/${parts.join("/")}`;
    const { host, circuit, cooldown } = this.#policies.route(text, path);
    const call = { host: text, path, suffix: partition };
    const former = this.former.of(call, this.#policies, this.#time.monotonicUs());
    const owner = inPartition(circuit);
    // The cooldown is kept for each partition if the circuit is, whatever `per` of its own owner says.
    const cooldownOwner = owner === circuit ? cooldown : `${cooldown}${partition}`;
    const names = new Set([`${common}${partition}`, owner, cooldownOwner, circuit, cooldown, host]);
    return { names: [...names], circuit: owner, former };
  }

  /** The partitions of a host or service in the table. All hosts are searched if the table has any partition. */
  partitionsOf(text: string): readonly HostBreaker[] {
    if (!this.#hasPartitions) return NO_HOSTS;
    const common = canonicalName(text);
    return [...this.#hosts.values()].filter(({ name }) => nameWithoutPartition(name) === common);
  }

  /**
   * The host or service whose cooldown a call of the circuit owner `name` can start. Undefined if it is not
   * in the table.
   */
  cooldownOwnerOf(name: string): HostBreaker | undefined {
    const common = commonName(name);
    const owner = isServiceName(common) ? common : this.#policies.route(common).cooldown;
    return this.#hosts.get(`${owner}${name.slice(common.length)}`);
  }

  #add(name: string): HostBreaker {
    const host = new HostBreaker(name);
    this.#last = undefined;
    this.#hosts.add(name, host);
    this.#hasPartitions ||= nameWithoutPartition(name) !== undefined;
    return host;
  }

  circuit(host: HostBreaker, role: Role): CircuitHolder {
    const known = host.circuits[role];
    // `role` may be any text here. Every object has a member "toString", so a check for undefined does not suffice.
    if (known instanceof CircuitHolder) return known;
    if (!isRole(role)) throw new RangeError(unknownRoleMessage(role));
    const circuit = new CircuitHolder(
      { host: host.name, role },
      this.#policies.circuit(host.name, role),
      this.#onChange,
    );
    host.circuits[role] = circuit;
    return circuit;
  }

  /** The longest time for which a circuit can be open. A stepped clock does not extend it (law B8). */
  longestOpenUs({ name, policy }: CircuitHolder): number {
    return longestOpenUs(policy, name.host === undefined ? 0 : this.#policies.retryAfterCapMs(name.host) * 1000);
  }

  resolver(name: string): CircuitHolder {
    const known = this.#resolvers.get(name);
    if (known !== undefined) return known;
    const circuit = new CircuitHolder({ resolver: name }, this.#policies.resolver(name), this.#onChange);
    this.#resolvers.add(name, circuit);
    return circuit;
  }

  *resolverNames(): IterableIterator<string> {
    for (const { name } of this.#resolvers.values()) if (name.resolver !== undefined) yield name.resolver;
  }

  /** Every circuit keeps its state under the new policies, also for calls that get other owners. */
  reload(policies: BreakerPolicies): void {
    this.former.remember(this.#hosts.values(), this.#policies, this.#time.monotonicUs());
    this.#policies = policies;
    this.#last = undefined;
    for (const host of this.#hosts.values()) host.soleOwners = undefined;
    for (const circuit of this.circuits()) {
      const { host, role, resolver } = circuit.name;
      if (resolver !== undefined) circuit.policy = policies.resolver(resolver);
      else if (host !== undefined && role !== undefined) circuit.policy = policies.circuit(host, role);
    }
  }
}

/** The canonical name of a host or service, or of one of its partitions. */
function canonicalName(text: string): string {
  const common = nameWithoutPartition(text);
  return common === undefined ? canonicalUnit(text) : `${canonicalUnit(common)}${text.slice(common.length)}`;
}

/** The hosts and services whose breaker state decides about a call. Most calls have one: their host. */
export interface CallOwners {
  /** The owner of the call's circuits: a host or a service. */
  readonly circuit: HostBreaker;
  /** The host or service whose cooldown the answer to the call can start. */
  readonly cooldown: HostBreaker;
  /** The host itself, if it is neither `circuit` nor `cooldown` and has state: an operator may have opened it alone. */
  readonly host: HostBreaker | undefined;
  /**
   * For a call of a partition: its hosts and services without the partition. Only operators' orders and holds for them
   * apply, and the ramp-up after such an order.
   */
  readonly common: readonly HostBreaker[];
  /** The owners before a reload that still deny the call by their state from then. Nearly always none. */
  readonly former: readonly HostBreaker[];
  /** Calls that would be refused are reported and sent. */
  readonly isShadow: boolean;
}

/** Shared, because most calls have neither common nor former owners. */
const NO_HOSTS: readonly HostBreaker[] = [];

/** All hosts and services whose cooldown may block a call: its owners, and `common` for a call of a partition. */
export function allOwners(owners: CallOwners): readonly HostBreaker[] {
  return owners.common.length === 0 ? distinctOwners(owners) : [...distinctOwners(owners), ...owners.common];
}

/** Each owner once. */
export function distinctOwners({ circuit, cooldown, host, former }: CallOwners): readonly HostBreaker[] {
  const owners = circuit === cooldown ? [circuit] : [circuit, cooldown];
  return host === undefined && former.length === 0 ? owners : [...owners, ...(host ? [host] : []), ...former];
}

/**
 * The ramp-ups that a call with these owners passes. For a call of a partition, `common` owners count only after an
 * order: the other cooldowns of `common` are for calls without a partition. Nearly always none, and nothing is allocated.
 */
export function rampUpsOf(owners: CallOwners, role: Role): readonly RampUp[] {
  let found: RampUp[] | undefined;
  const add = (rampUp: RampUp | undefined) => {
    if (rampUp !== undefined) found = [...(found ?? []), rampUp];
  };
  for (const owner of distinctOwners(owners)) add(owner.rampUp(role));
  for (const owner of owners.common) {
    const rampUp = owner.rampUp(role);
    if (rampUp?.isOrdered) add(rampUp);
  }
  return found ?? NO_RAMP_UPS;
}
