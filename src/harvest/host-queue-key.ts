import { urlHost } from "../core/text/host.ts";
import type { PendingStep } from "./step.ts";

/** In the name of a queue instead of a host. The error of the request itself will name the problem. */
const INVALID_URL = "(invalid URL)";

/** The name of a step's queue: host and role. Hosts of one service have queues of their own, although they share limits. */
export function hostQueueKey({ step }: Pick<PendingStep, "step">): string {
  const role = step.kind === "ask" ? step.request.role : "artifact";
  try {
    return `${urlHost(step.url).host} ${role}`;
  } catch (error) {
    if (error instanceof RangeError) return `${INVALID_URL} ${role}`;
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

/** Whether the works of a queue wait for a host: their next step is known, and its URL is valid. */
export function isHostQueue(queue: string): boolean {
  const { host } = parseHostQueueKey(queue);
  return host !== "" && host !== INVALID_URL;
}

/** Whether the steps of a queue are downloads of files. */
export function isDownloadQueue(queue: string): boolean {
  return queue.endsWith(" artifact");
}
