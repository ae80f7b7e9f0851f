import type { OperatorOrder } from "../core/breaker/breaker-order.ts";
import type { Circuit, CircuitPolicy, FailureKind } from "../core/breaker/circuit.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { OpenReason } from "../errors.ts";
import type { LimitPart, Role } from "../policy/roles.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { RampUp } from "./ramp-up.ts";

/** A host in cooldown, a circuit, or traffic that resumes after a cooldown: what a denied call waits for. */
export type Blocker = HostBreaker | CircuitHolder | RampUp;

/**
 * What caused a change:
 * - `local`: a call or an operator of this process. Only these changes are published to the peers.
 * - `peer`: a record of the peers.
 * - `timeout`: the end of a timeout. It unblocks no waiting call: each has its own timer.
 * - `counted`: the failures of this process and of its peers together have reached the limit. The record already has
 *   the change.
 * - `local-only`: failures that never reached the host. They may be a fault of this process's own network.
 */
export type ChangeOrigin = "local" | "peer" | "timeout" | "counted" | "local-only";

/** A change that may matter to waiting calls and to the peers. */
export type BreakerChange = { readonly origin: ChangeOrigin } & (
  | { readonly kind: "circuit"; readonly blocker: CircuitHolder; readonly old: Circuit; readonly now: Circuit }
  | { readonly kind: "cooldown"; readonly blocker: HostBreaker; readonly untilUs: number; readonly reason: OpenReason }
  | { readonly kind: "cooldown-ended"; readonly blocker: HostBreaker }
  /**
   * An operator has opened, closed or half-opened a host or one circuit. `order` is undefined for an order of a peer.
   * `version` is set if the order was given to a host, and is passed to one of its partitions.
   */
  | {
      readonly kind: "order";
      readonly blocker: Blocker;
      readonly order: OperatorOrder | undefined;
      readonly version?: number;
    }
  /** An operator holds these roles of a host until then, or has released them (`untilUs` 0). `order` as above. */
  | {
      readonly kind: "hold";
      readonly blocker: HostBreaker;
      readonly roles: readonly Role[];
      readonly untilUs: number;
      readonly order: OperatorOrder | undefined;
    }
  /**
   * An operator has changed the limits of these roles or of the total, or has ended such a change (`limit.untilUs` 0).
   * `order` as above.
   */
  | {
      readonly kind: "limit";
      readonly blocker: HostBreaker;
      readonly roles: readonly LimitPart[];
      readonly limit: OrderedLimit;
      readonly order: OperatorOrder | undefined;
    }
  /** A call was answered, or the ramp-up began again or is over. Never shared: each process has its own. */
  | { readonly kind: "ramp-up"; readonly blocker: RampUp }
  /** A call has failed, and has not opened its circuit for the other processes. The peers count it too. */
  | {
      readonly kind: "failure";
      readonly blocker: CircuitHolder;
      readonly failure: FailureKind;
      readonly policy: Pick<CircuitPolicy, "failMax" | "resetUs">;
    }
  /** A failure of the rolling window that has started no cooldown for other processes. */
  | { readonly kind: "recent-failure"; readonly blocker: HostBreaker; readonly isUnreached: boolean }
  /** A call has succeeded, and the peers have counted failures of its circuit. */
  | { readonly kind: "success"; readonly blocker: CircuitHolder }
  /** A new policy may admit more trial calls. */
  | { readonly kind: "policy"; readonly blocker: CircuitHolder }
);

/** Asks the peers whether this process may probe a half-open circuit: all processes share `trial_calls` (law B2). */
export interface ProbePermissions {
  /**
   * True, or until when the probe is denied. While the peers are being asked, `isPending` is true.
   * @param leaseUs how long a probe that is never reported keeps other processes from probing
   */
  mayProbe(
    circuit: CircuitHolder,
    nowUs: number,
    leaseUs: number,
  ): true | { readonly untilUs: number; readonly isPending: boolean };
  /** The permission is used by the call with this permit. */
  useProbe(circuit: CircuitHolder, permit: number): void;
}

/** The host, service or resolver that it belongs to. */
export function ownerOfBlocker({ name }: Blocker): string {
  return typeof name === "string" ? name : (name.host ?? name.resolver ?? "");
}
