import { EvictingMap } from "../core/evicting-map.ts";
import type { BreakerPolicies } from "../policy/breaker-policy.ts";
import { isRole, ROLES, type Role, unknownRoleMessage } from "../policy/roles.ts";
import { canonicalUnit, isServiceName } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import type { CallUnits } from "./call-units.ts";
import { CircuitHolder, type OnCircuitChange } from "./circuit-holder.ts";
import { HostBreaker } from "./host-breaker.ts";

/** A host without failures could be evicted at once. Keeping this many avoids building it again for each call. */
const KEPT_HOSTS = 16_384;
const KEPT_RESOLVERS = 1024;

/**
 * The hosts, services and resolvers of a process, created on first use. They are evicted when their state equals a new one (law
 * L11), hosts also when unused for an hour.
 */
export class BreakerTable {
  #policies: BreakerPolicies;
  readonly #time: Time;
  readonly #onChange: OnCircuitChange;
  readonly #hosts: EvictingMap<HostBreaker>;
  readonly #resolvers = new EvictingMap<CircuitHolder>(circuit => circuit.isFresh, KEPT_RESOLVERS);

  constructor(policies: BreakerPolicies, time: Time, onChange: OnCircuitChange) {
    this.#policies = policies;
    this.#time = time;
    this.#onChange = onChange;
    const isForgettable = (host: HostBreaker) =>
      host.isForgettable(time.monotonicUs(), this.#policies.rollingWindow.windowUs);
    this.#hosts = new EvictingMap(isForgettable, KEPT_HOSTS);
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

  /** A host or service in the table, by any spelling of its name. Throws a RangeError for a text that is neither. */
  find(text: string): HostBreaker | undefined {
    // The keys are canonical, so a text that is found as it stands need not be parsed.
    return this.#hosts.get(text) ?? this.#hosts.get(canonicalUnit(text));
  }

  host(text: string): HostBreaker {
    return this.find(text) ?? this.#add(canonicalUnit(text));
  }

  /** The hosts and services that decide about a call, created on first use. */
  unitsOf(text: string, path?: string): CallUnits {
    const { host, circuit: circuitName, cooldown: cooldownName } = this.#policies.route(text, path);
    const circuit = this.#hosts.get(circuitName) ?? this.#add(circuitName);
    const cooldown =
      cooldownName === circuitName ? circuit : (this.#hosts.get(cooldownName) ?? this.#add(cooldownName));
    const isUnit = host === circuitName || host === cooldownName;
    return { circuit, cooldown, host: isUnit ? undefined : this.#hosts.get(host) };
  }

  /** What the failures of a circuit's owner may put in cooldown. */
  cooldownUnitOf(name: string): HostBreaker | undefined {
    return this.#hosts.get(isServiceName(name) ? name : this.#policies.route(name).cooldown);
  }

  #add(name: string): HostBreaker {
    const host = new HostBreaker(name, this.#time.monotonicUs());
    this.#hosts.add(name, host);
    return host;
  }

  circuit(host: HostBreaker, role: Role): CircuitHolder {
    const known = host.circuits[role];
    if (known !== undefined) return known;
    if (!isRole(role)) throw new RangeError(unknownRoleMessage(role));
    const circuit = new CircuitHolder(
      { host: host.name, role },
      this.#policies.circuit(host.name, role),
      this.#onChange,
    );
    host.circuits[role] = circuit;
    return circuit;
  }

  resolver(name: string): CircuitHolder {
    const known = this.#resolvers.get(name);
    if (known !== undefined) return known;
    const circuit = new CircuitHolder({ resolver: name }, this.#policies.resolver(name), this.#onChange);
    this.#resolvers.add(name, circuit);
    return circuit;
  }

  /** Every circuit keeps its state under the new policies. */
  reload(policies: BreakerPolicies): void {
    this.#policies = policies;
    for (const circuit of this.circuits()) {
      const { host, role, resolver } = circuit.name;
      if (resolver !== undefined) circuit.policy = policies.resolver(resolver);
      else if (host !== undefined && role !== undefined) circuit.policy = policies.circuit(host, role);
    }
  }
}
