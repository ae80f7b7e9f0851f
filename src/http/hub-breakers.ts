import type { CircuitState } from "../breaker/breaker-events.ts";
import { operatorReason } from "../breaker/cooldowns.ts";
import { callStatusOf, type HostStatus, type RoleStatus } from "../breaker/host-status.ts";
import { orderMs } from "../breaker/order-seconds.ts";
import { type BreakerTarget, type CircuitRequest, ordersForAll, type ResolvedTarget } from "../breaker/orders.ts";
import type { OpenReason } from "../errors.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { ROLES } from "../policy/roles.ts";
import { serviceOfName } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import { checkOrderOptions } from "./check-options.ts";
import { circuitTargetOf } from "./hub-target.ts";

/** The options of `hub.breakers.open`. */
export interface OpenCircuitOptions {
  /** How long the circuit stays open, greater than 0 and at most a year. */
  readonly seconds: number;
  /** Shown in errors, events and tables. @default "operator" */
  readonly reason?: string | undefined;
  /** Also replaces an order that lasts longer; a Retry-After of the server stays. @default false */
  readonly replace?: boolean | undefined;
}

/** The state of a host, a service, one role of either, or a resolver. */
export interface BreakerStatus {
  /** Whether this is the state of a host, a service or a resolver. */
  readonly kind: "host" | "service" | "resolver";
  /** The canonical name of the host, or the name of the service or resolver. */
  readonly name: string;
  /** The role, if the target named one. */
  readonly role: RoleStatus["role"] | undefined;
  /** `open` during a cooldown, otherwise the state of the circuit. Without a role it is that of the worst role. */
  readonly state: CircuitState;
  /** Why it is open or half-open; undefined when it is closed. */
  readonly reason: OpenReason | undefined;
  /** Milliseconds until calls may be sent again; 0 if they may be sent now. */
  readonly remainingMs: number;
  /** The same moment in epoch milliseconds; undefined when `remainingMs` is 0. */
  readonly openUntilWallMs: number | undefined;
}

/**
 * The circuits of a hub, for programs that open and close them. A target is a host, `<host>:<role>`, a URL,
 * `service:<name>` or `resolver:<name>`; another text is a RangeError. With a shared store an order applies to all
 * processes, like an order of `docstokg breaker`; without one, to this hub.
 */
export interface HubBreakers {
  /**
   * Forces the circuit open: calls are refused until the time is over or `close` is called. Of two orders, the one that
   * ends later applies.
   */
  open(target: string, options: OpenCircuitOptions): BreakerStatus;
  /**
   * Closes the circuits of the target and clears their failure counts. Without a role, its cooldowns end too; with one,
   * the cooldowns of the host or service stay and still refuse the calls. If a host belongs to a service, the same is
   * done for the service.
   */
  close(target: string): BreakerStatus;
  /**
   * Makes a circuit half-open, also one that an order opened: the next calls are trial calls, and their results decide.
   * Cooldowns and the service of a host are treated as by `close`.
   */
  halfOpen(target: string): BreakerStatus;
  /**
   * What decides about calls now: the circuits and cooldowns of the target and, for a host that belongs to a service,
   * those of the service. A target that was never called is closed.
   */
  state(target: string): BreakerStatus;
  /**
   * The state of every host, service and resolver in memory, each by itself: a host without that of its service. Those
   * without failures may be missing.
   */
  list(): readonly BreakerStatus[];
}

/** The implementation of `HubBreakers`, whose members are documented there. */
export class RegistryHubBreakers implements HubBreakers {
  readonly #registry: BreakerRegistry;
  readonly #time: Time;
  readonly #policy: () => LoadedPolicy;

  constructor(registry: BreakerRegistry, time: Time, policy: () => LoadedPolicy) {
    this.#registry = registry;
    this.#time = time;
    this.#policy = policy;
  }

  open(text: string, options: OpenCircuitOptions): BreakerStatus {
    checkOrderOptions(options, ["seconds", "reason", "replace"], "hub.breakers.open");
    const { seconds, reason = "operator", replace = false } = options;
    const ms = orderMs(seconds);
    return this.#giveOrder(text, { kind: "open", ms, reason: operatorReason(reason), isReplacing: replace });
  }

  close(text: string): BreakerStatus {
    return this.#giveOrder(text, { kind: "close" });
  }

  halfOpen(text: string): BreakerStatus {
    return this.#giveOrder(text, { kind: "half-open" });
  }

  state(text: string): BreakerStatus {
    return this.#statusOf(circuitTargetOf(this.#policy(), text));
  }

  list(): readonly BreakerStatus[] {
    const { table } = breakersOf(this.#registry);
    const resolvers = Array.from(table.resolverNames(), resolver =>
      this.#statusOf({ target: { resolver }, others: [], circuitOwner: undefined }),
    );
    return [...Array.from(this.#registry.statuses(), toStatus), ...resolvers];
  }

  #giveOrder(text: string, order: CircuitRequest): BreakerStatus {
    const found = circuitTargetOf(this.#policy(), text);
    for (const { target, request } of ordersForAll(found, order)) breakersOf(this.#registry).giveOrder(target, request);
    return this.#statusOf(found);
  }

  #statusOf({ target, others, circuitOwner }: ResolvedTarget<BreakerTarget>): BreakerStatus {
    if ("resolver" in target) {
      const status = this.#registry.resolverStatus(target.resolver);
      return this.#withDeadline({ kind: "resolver", name: target.resolver, role: undefined, ...status });
    }
    const { table } = breakersOf(this.#registry);
    const owners = [target.unit, ...others].flatMap(name => table.find(name) ?? []);
    const owner = owners.find(({ name }) => name === circuitOwner);
    const roles = target.role === undefined ? ROLES : [target.role];
    const status = callStatusOf(owners, owner, roles, this.#time.monotonicUs());
    return this.#withDeadline({ ...kindAndName(target.unit), role: target.role, ...status });
  }

  #withDeadline({
    kind,
    name,
    role,
    state,
    reason,
    remainingMs,
  }: Omit<BreakerStatus, "openUntilWallMs">): BreakerStatus {
    const openUntilWallMs = remainingMs > 0 ? this.#time.wallMs() + remainingMs : undefined;
    return { kind, name, role, state, reason, remainingMs, openUntilWallMs };
  }
}

function toStatus({ host, state, reason, remainingMs, openUntilWallMs }: HostStatus): BreakerStatus {
  return { ...kindAndName(host), role: undefined, state, reason, remainingMs, openUntilWallMs };
}

function kindAndName(unit: string): Pick<BreakerStatus, "kind" | "name"> {
  const service = serviceOfName(unit);
  return service === undefined ? { kind: "host", name: unit } : { kind: "service", name: service };
}
