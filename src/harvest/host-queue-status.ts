import type { Backlog } from "./backlog.ts";
import { parseHostQueueKey } from "./host-queue-key.ts";
import type { HostQueues, WaitingTasks } from "./host-queues.ts";

export interface HostQueueStatus {
  readonly host: string;
  readonly role: string;
  readonly inFlightRequests: number;
  /** Works that wait for their turn, in memory or in the manifest. */
  readonly waiting: number;
  /** Milliseconds until the next request may be sent, as far as known; 0 if it may be sent now. */
  readonly freeInMs: number;
}

/** Every queue with requests in flight or waiting works, the busiest first. */
export function hostQueueStatuses(
  hostQueues: Pick<HostQueues<unknown>, "queues" | "delayedQueues">,
  inFlightByQueue: ReadonlyMap<string, number>,
  backlog: Pick<Backlog, "queues">,
  nowUs: number,
): readonly HostQueueStatus[] {
  const statuses = new Map<string, HostQueueStatus>();
  for (const [queue, inFlightRequests] of inFlightByQueue)
    statuses.set(queue, { ...parseHostQueueKey(queue), inFlightRequests, waiting: 0, freeInMs: 0 });
  // Called in the order in which works may start: a later group does not change when the next request may be sent.
  const add = ({ queue, waiting, notBeforeUs }: WaitingTasks) => {
    const known = statuses.get(queue) ?? { ...parseHostQueueKey(queue), inFlightRequests: 0, waiting: 0, freeInMs: 0 };
    const freeInMs = known.waiting > 0 ? known.freeInMs : Math.max(0, Math.ceil((notBeforeUs - nowUs) / 1000));
    statuses.set(queue, { ...known, waiting: known.waiting + waiting, freeInMs });
  };
  for (const tasks of hostQueues.queues()) add(tasks);
  for (const tasks of hostQueues.delayedQueues()) add(tasks);
  for (const tasks of backlog.queues()) add(tasks);
  return [...statuses.values()].sort((a, b) => b.inFlightRequests + b.waiting - a.inFlightRequests - a.waiting);
}
