import type { SharedBreakerStatus } from "../../breaker/host-status.ts";
import type { RunningProcess } from "../../http/observer.ts";
import { budgetUnitOf } from "../../policy/budget-unit.ts";
import { type LoadedPolicy, namesHost } from "../../policy/load.ts";

/** The hosts, services and resolvers that an order can be for: those of the policies, the store and the processes. */
export class KnownTargets {
  readonly hosts: ReadonlySet<string>;
  readonly services: ReadonlySet<string>;
  readonly resolvers: ReadonlySet<string>;
  /** False if a process has called more hosts than it lists. */
  readonly isComplete: boolean;
  readonly #policies: readonly LoadedPolicy[];

  constructor(
    policies: readonly LoadedPolicy[],
    statuses: readonly SharedBreakerStatus[],
    processes: readonly RunningProcess[],
    resolvers: readonly string[],
  ) {
    // Orders are for the host of `service <name>:<host>`, the key of a service with `per_host`: it has no circuit.
    const used = [
      ...statuses.filter(({ kind }) => kind === "host").map(({ name }) => name),
      ...processes.flatMap(({ snapshot }) => [
        ...snapshot.hosts.map(({ host }) => host),
        ...snapshot.keys.map(({ key }) => key),
      ]),
    ].map(budgetUnitOf);
    this.#policies = policies;
    this.hosts = new Set([
      ...used.flatMap(({ host }) => host ?? []),
      ...policies.flatMap(({ ratelimits, breakers }) => [
        ...ratelimits.resolved.routing.hostNames(),
        ...Object.keys(breakers.options.hosts ?? {}),
      ]),
    ]);
    this.services = new Set([
      ...used.flatMap(({ service }) => service ?? []),
      ...policies.flatMap(({ ratelimits }) => Object.keys(ratelimits.options.services ?? {})),
    ]);
    this.resolvers = new Set([
      ...resolvers,
      ...statuses.filter(({ kind }) => kind === "resolver").map(({ name }) => name),
      ...processes.flatMap(({ snapshot }) => snapshot.resolvers ?? []),
      ...policies.flatMap(({ breakers }) => Object.keys(breakers.options.resolvers ?? {})),
    ]);
    this.isComplete = !processes.some(({ snapshot }) => snapshot.isPartial === true);
  }

  /**
   * Whether the host was called, has a record, or is listed in a policy, also by a pattern such as `*.example.org`. False
   * for a text that is no host.
   */
  hasHost(host: string): boolean {
    if (this.hosts.has(host)) return true;
    try {
      return this.#policies.some(
        policy => namesHost(policy, host) || policy.ratelimits.resolved.routing.find(host).service !== undefined,
      );
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
  }
}
