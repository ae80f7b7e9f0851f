import type { Role } from "../policy/roles.ts";
import type { Hub } from "./hub.ts";
import type { KeptRobots } from "./robots/kept-robots.ts";

/** What the programs of this package need of a hub, and `Hub` does not make public. */
export interface HubInternals {
  /** The id of this hub in the store of the limits; undefined if no store is shared. */
  readonly processId: string | undefined;
  /** These processes that share the store have ended: their leases end now, and not at their time. */
  processesEnded(processIds: readonly string[]): void;
  /**
   * Milliseconds after which a refused request may be tried again, earlier than `retryAfterMs`: the refusal counts the turn
   * of another process, and that process may have ended. Undefined if no other process is ahead.
   * @param key `host` of the refusal: a host or a service
   */
  retryMs(key: string, role: Role): number | undefined;
  /**
   * Adds a listener that is called when refused requests may be sent earlier than their refusals have said: an operator,
   * another process, a success or a reload has changed a limit, a circuit or a cooldown, or an operator's order has ended.
   */
  onLimitsEased(listener: () => void): void;
  /** Whether a request to the host would be sent now, as far as this process knows. */
  isFree(host: string, role: Role): boolean;
  /**
   * Before the hub requests a robots.txt, it looks here; afterwards it saves the file here.
   * @param onRead called when a robots.txt was read or given up: a request to this host that was refused because of it may
   * be sent again. Its `retryAfterMs` is the longest time that the reading may take. @default not called
   */
  keepRobots(kept: KeptRobots, onRead?: (host: string) => void): void;
}

const internalsByHub = new WeakMap<object, HubInternals>();

export function linkInternals(hub: Hub, internals: HubInternals): void {
  internalsByHub.set(hub, internals);
}

/** Undefined for a hub that was not made by `createHub`. */
export function internalsOf(hub: Pick<Hub, "request">): HubInternals | undefined {
  return internalsByHub.get(hub);
}
