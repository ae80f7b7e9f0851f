import { urlHost } from "../core/text/host.ts";
import type { PendingStep } from "./step.ts";

/** The name of a step's queue: host and role. Hosts of one service have queues of their own, although they share limits. */
export function hostQueueKey({ step }: Pick<PendingStep, "step">): string {
  const role = step.kind === "ask" ? step.request.role : "artifact";
  try {
    return `${urlHost(step.url).host} ${role}`;
  } catch (error) {
    // The error of the request itself will name the problem.
    if (error instanceof RangeError) return `(invalid URL) ${role}`;
    throw error;
  }
}

/** The queues of a host whose requests wait until its robots.txt was read. */
export function pageQueuesOf(host: string): readonly string[] {
  return [`${host} landing`, `${host} artifact`];
}

export function parseHostQueueKey(queue: string): { readonly host: string; readonly role: string } {
  const space = queue.lastIndexOf(" ");
  return { host: queue.slice(0, space), role: queue.slice(space + 1) };
}

/** Whether the steps of a queue are downloads of files. */
export function isDownloadQueue(queue: string): boolean {
  return queue.endsWith(" artifact");
}
