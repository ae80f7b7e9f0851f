import { urlHost } from "../core/text/host.ts";
import type { Way } from "./step.ts";

export interface LaneReport {
  readonly host: string;
  readonly role: string;
  readonly underWay: number;
  readonly waiting: number;
  /** Milliseconds until the next may go, as far as that is known; 0 for now. */
  readonly freeInMs: number;
}

/** Breakers and windows know hosts by their names, so that lanes follow the same. */
export function laneOf({ step }: Pick<Way, "step">): string {
  const role = step.kind === "ask" ? step.question.role : "artifact";
  try {
    return `${urlHost(step.url).host} ${role}`;
  } catch (error) {
    // Sending it will say what is wrong with it.
    if (error instanceof RangeError) return `(no host) ${role}`;
    throw error;
  }
}

export function partsOfLane(lane: string): { readonly host: string; readonly role: string } {
  const [host = "", role = ""] = lane.split(" ");
  return { host, role };
}
