import { operatorReason } from "../breaker/cooldowns.ts";
import type { OrderRequest } from "../breaker/orders.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import type { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { hubTargetOf } from "./hub-target.ts";

/** The options of `hub.limits.hold`. */
export interface HoldOptions {
  /** Shown in errors, events and tables. @default "operator" */
  readonly reason?: string | undefined;
}

/**
 * The rate limits of a hub. A target is a host, `<host>:<role>` for one role, a URL or `service:<name>`; another text is
 * a RangeError. With a shared store, `hold` and `release` apply to all processes, as `docstokg limits hold`; without
 * one, to this hub.
 */
export interface HubLimits {
  /**
   * Sends nothing to the target for a while: its calls wait, or are refused with a RateLimitExceeded if they may not wait
   * that long. Also where the policy is in shadow mode. Of two holds the later end counts.
   * @param seconds greater than 0
   */
  hold(target: string, seconds: number, options?: HoldOptions): void;
  /** Ends the holds of the target: its calls are sent as the rate limits allow. */
  release(target: string): void;
  /**
   * The state of every key (a host or service, and a role) that has been used, is held (`hold`), or still has usage in its
   * windows.
   */
  list(): readonly KeySnapshot[];
}

/** The implementation of `HubLimits`, whose members are documented there. */
export class GateHubLimits implements HubLimits {
  readonly #gate: Gate;
  readonly #breakers: BreakerRegistry;
  readonly #policy: () => LoadedPolicy;

  constructor(gate: Gate, breakers: BreakerRegistry, policy: () => LoadedPolicy) {
    this.#gate = gate;
    this.#breakers = breakers;
    this.#policy = policy;
  }

  hold(text: string, seconds: number, { reason = "operator" }: HoldOptions = {}): void {
    if (!(seconds > 0 && seconds < Number.POSITIVE_INFINITY))
      throw new RangeError(`seconds must be a finite number greater than 0, got ${seconds}`);
    this.#give(text, { kind: "hold", ms: seconds * 1000, reason: operatorReason(reason) });
  }

  release(text: string): void {
    this.#give(text, { kind: "release" });
  }

  list(): readonly KeySnapshot[] {
    return this.#gate.keySnapshots();
  }

  #give(text: string, order: OrderRequest): void {
    const { target } = hubTargetOf(this.#policy(), text);
    if ("resolver" in target)
      throw new RangeError(`expected a host, <host>:<role>, a URL or service:<name>, got ${JSON.stringify(text)}`);
    breakersOf(this.#breakers).giveOrder(target, order);
  }
}
