import type { CircuitState } from "../breaker/breaker-events.ts";
import { operatorReason } from "../breaker/cooldowns.ts";
import type { HostStatus, RoleStatus } from "../breaker/host-status.ts";
import { orderMs } from "../breaker/order-seconds.ts";
import type { BreakerTarget, OrderRequest } from "../breaker/orders.ts";
import type { OpenReason } from "../errors.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { LoadedPolicy } from "../policy/load.ts";
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
   * Closes the circuits: calls flow again. Cooldowns and failure counts are cleared; for a host, those of its service
   * too.
   */
  close(target: string): BreakerStatus;
  /** Makes a circuit half-open, also one that an order opened: the next calls are trial calls, and their results decide. */
  halfOpen(target: string): BreakerStatus;
  /** The state now. A target that was never called is closed. */
  state(target: string): BreakerStatus;
  /** The state of every host, service and resolver in memory. Those without failures may be missing. */
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
    const { target } = circuitTargetOf(this.#policy(), text);
    const order = { kind: "open", ms, reason: operatorReason(reason), isReplacing: replace } as const;
    return this.#giveOrder([target], target, order);
  }

  close(text: string): BreakerStatus {
    const { target, others } = circuitTargetOf(this.#policy(), text);
    return this.#giveOrder([...others, target], target, { kind: "close" });
  }

  halfOpen(text: string): BreakerStatus {
    const { target, others } = circuitTargetOf(this.#policy(), text);
    return this.#giveOrder([...others, target], target, { kind: "half-open" });
  }

  state(text: string): BreakerStatus {
    return this.#statusOf(circuitTargetOf(this.#policy(), text).target);
  }

  list(): readonly BreakerStatus[] {
    const { table } = breakersOf(this.#registry);
    const resolvers = Array.from(table.resolverNames(), resolver => this.#statusOf({ resolver }));
    return [...Array.from(this.#registry.statuses(), toStatus), ...resolvers];
  }

  #giveOrder(targets: readonly BreakerTarget[], target: BreakerTarget, order: OrderRequest): BreakerStatus {
    for (const each of targets) breakersOf(this.#registry).giveOrder(each, order);
    return this.#statusOf(target);
  }

  #statusOf(target: BreakerTarget): BreakerStatus {
    if ("resolver" in target) {
      const { state, reason, remainingMs } = this.#registry.resolverStatus(target.resolver);
      const openUntilWallMs = remainingMs > 0 ? this.#time.wallMs() + remainingMs : undefined;
      return { kind: "resolver", name: target.resolver, role: undefined, state, reason, remainingMs, openUntilWallMs };
    }
    const host = toStatus(this.#registry.unitStatus(target.unit));
    if (target.role === undefined) return host;
    const { roles, cooldownMs } = this.#registry.unitStatus(target.unit);
    const circuit = roles.find(({ role }) => role === target.role);
    // A cooldown of the host refuses every role.
    if (cooldownMs > (circuit?.remainingMs ?? 0)) return { ...host, role: target.role };
    const { state = "closed", reason, remainingMs = 0 } = circuit ?? {};
    const openUntilWallMs = remainingMs > 0 ? this.#time.wallMs() + remainingMs : undefined;
    return { ...host, role: target.role, state, reason, remainingMs, openUntilWallMs };
  }
}

function toStatus({ host, state, reason, remainingMs, openUntilWallMs }: HostStatus): BreakerStatus {
  const service = /^service (.+)$/.exec(host)?.[1];
  const kind = service === undefined ? "host" : "service";
  return { kind, name: service ?? host, role: undefined, state, reason, remainingMs, openUntilWallMs };
}
