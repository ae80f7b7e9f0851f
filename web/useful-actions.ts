/** Which actions the page offers for a host. */
import type { ActionName, HostActionName, HostState } from "../src/dashboard/dashboard-state.ts";

const NAMES: readonly HostActionName[] = ["open", "close", "half-open", "hold", "release", "set-limit", "reset-limit"];

/**
 * The actions that make sense for a host.
 * @param all the hosts of the page. The calls of a held host may be counted by a key of its service: then the hold is in
 *   the row of the service, and is released in that of the host
 */
export function hostActions(
  host: HostState,
  allowed: readonly ActionName[],
  all: Iterable<HostState>,
): readonly HostActionName[] {
  const isTarget = () => Array.from(all).some(({ keys }) => keys.some(({ hold }) => hold?.target === host.name));
  const isHeld = host.keys.some(key => key.isHeld || key.hold !== null) || isTarget();
  const isOrdered = host.keys.some(key => key.order !== null || key.totalOrder !== null);
  const isUseful = (name: HostActionName) =>
    (name !== "release" || isHeld) &&
    (name !== "reset-limit" || isOrdered) &&
    // A resolver has a circuit and no limits.
    ((name !== "hold" && name !== "set-limit") || host.kind !== "resolver");
  return NAMES.filter(name => allowed.includes(name) && isUseful(name));
}
