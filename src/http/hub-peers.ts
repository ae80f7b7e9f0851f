import type { Hub } from "./hub.ts";

/** How a hub appears to the processes that share its store. */
export interface HubPeers {
  /** Undefined if no store is shared. */
  readonly processId: string | undefined;
  /** These processes have ended: their leases end now, and not at their time. */
  processesEnded(processIds: readonly string[]): void;
}

/** A program that supervises workers needs more of a hub than `Hub` makes public. */
const peersByHub = new WeakMap<object, HubPeers>();

export function linkPeers(hub: Hub, peers: HubPeers): void {
  peersByHub.set(hub, peers);
}

/** Undefined for a hub that was not made by `createHub`. */
export function peersOf(hub: Pick<Hub, "request">): HubPeers | undefined {
  return peersByHub.get(hub);
}
