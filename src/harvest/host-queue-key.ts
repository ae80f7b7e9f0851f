import { urlHost } from "../core/text/host.ts";
import type { PendingStep } from "./step.ts";

export interface HostQueueStatus {
  readonly host: string;
  readonly role: string;
  readonly inFlightRequests: number;
  readonly waiting: number;
  /** Milliseconds until the next may go, as far as that is known; 0 for now. */
  readonly freeInMs: number;
}

/** Breakers and windows know hosts by their names, so that lanes follow the same. */
export function hostQueueKey({ step }: Pick<PendingStep, "step">): string {
  const role = step.kind === "ask" ? step.request.role : "artifact";
  try {
    return `${urlHost(step.url).host} ${role}`;
  } catch (error) {
    // Sending it will say what is wrong with it.
    if (error instanceof RangeError) return `(no host) ${role}`;
    throw error;
  }
}

export function parseHostQueueKey(queue: string): { readonly host: string; readonly role: string } {
  const [host = "", role = ""] = queue.split(" ");
  return { host, role };
}
