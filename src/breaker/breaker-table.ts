import { EvictingMap } from "../core/evicting-map.ts";
import { canonicalHost } from "../core/text/host.ts";
import type { BreakerPolicies } from "../policy/breaker-policy.ts";
import { isRole, ROLES, type Role, unknownRoleMessage } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { CircuitHolder, type OnCircuitChange } from "./circuit-holder.ts";
import { HostBreaker } from "./host-breaker.ts";

/** A host that is well differs from a fresh one in nothing: without this, hosts called in turn would be made anew each time. */
const KEPT_HOSTS = 16_384;
const KEPT_RESOLVERS = 1024;

/** The hosts and resolvers of a process, with their circuits, made on first use and forgotten when they are as good as new, or after an hour's silence. */
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

  /** A host that is remembered, by whatever spelling. Throws a RangeError for what is not a host. */
  find(text: string): HostBreaker | undefined {
    // Known hosts carry canonical names, so that one found here needs no more parsing.
    return this.#hosts.get(text) ?? this.#hosts.get(canonicalHost(text));
  }

  host(text: string): HostBreaker {
    const known = this.find(text);
    if (known !== undefined) return known;
    const host = new HostBreaker(canonicalHost(text), this.#time.monotonicUs());
    this.#hosts.add(host.name, host);
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

  /** Goes on under other policies; every circuit keeps its state. */
  reload(policies: BreakerPolicies): void {
    this.#policies = policies;
    for (const circuit of this.circuits()) {
      const { host, role, resolver } = circuit.name;
      if (resolver !== undefined) circuit.policy = policies.resolver(resolver);
      else if (host !== undefined && role !== undefined) circuit.policy = policies.circuit(host, role);
    }
  }
}
