import type { LeaseReply } from "../stores/store.ts";

/** Whether the store has lost a budget of the request, and with it the leases of that budget. */
export function isLost(reply: LeaseReply | undefined): boolean {
  return reply?.kind === "wait" && reply.isLost === true;
}
