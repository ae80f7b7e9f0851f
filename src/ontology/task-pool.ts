import { BusyError, RejectedError } from "../errors.ts";
import type { Time } from "../time/time.ts";

/** `fail`: the hub refuses a request that would have to wait. `block`: the request waits in the queue. */
export type WaitMode = "fail" | "block";

export interface TaskPoolOptions {
  readonly time: Time;
  /** How many items are attempted at a time. */
  readonly parallel: number;
  readonly signal?: AbortSignal | undefined;
}

interface PoolTask<Item> {
  readonly index: number;
  readonly item: Item;
  dueUs: number;
  refusals: number;
}

/**
 * Attempts items whose hosts reach their rate limits at different times. Each item is first attempted in mode `fail`. A
 * refused item is deferred by the time in the refusal, and other items go first. If no item is due, the next one is
 * attempted in mode `block`, so waiting happens only in the hub's queues, not here.
 * Results have the order of the items. Rejects with the first error of `attempt` that is not a refusal in mode `fail`.
 */
export async function runTaskPool<Item, Result>(
  items: readonly Item[],
  attempt: (item: Item, mode: WaitMode) => Promise<Result>,
  { time, parallel, signal }: TaskPoolOptions,
): Promise<readonly Result[]> {
  const waiting: PoolTask<Item>[] = items.map((item, index) => ({ index, item, dueUs: 0, refusals: 0 }));
  const results = new Array<Result>(items.length);
  const work = async (): Promise<void> => {
    for (let task = takeNext(waiting, time); task !== undefined; task = takeNext(waiting, time)) {
      signal?.throwIfAborted();
      const isDue = task.dueUs <= time.monotonicUs();
      try {
        results[task.index] = await attempt(task.item, isDue ? "fail" : "block");
      } catch (error) {
        if (!isDue || !(error instanceof RejectedError)) throw error;
        task.refusals += 1;
        task.dueUs = time.monotonicUs() + deferralUs(error, task.refusals);
        waiting.push(task);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(parallel, items.length)) }, work));
  return results;
}

/**
 * How long a refused item is deferred: by the time in the refusal. A refusal because all concurrency slots are in use has
 * no time. If it is the first refusal of the item, the item is deferred by 1 ms. Otherwise all items that have a time go
 * first, even if they are not due yet, and the item is then attempted in mode `block`.
 */
function deferralUs(refusal: RejectedError, refusals: number): number {
  if (refusal instanceof BusyError || refusal.retryAfterMs === undefined)
    return refusals > 1 ? Number.MAX_SAFE_INTEGER : 1000;
  return Math.max(1, refusal.retryAfterMs * 1000);
}

/** Removes and returns the first task that is due; if none is due, the task that is due soonest. */
function takeNext<Item>(waiting: PoolTask<Item>[], time: Time): PoolTask<Item> | undefined {
  const nowUs = time.monotonicUs();
  let at = waiting.findIndex(task => task.dueUs <= nowUs);
  if (at < 0)
    at = waiting.reduce(
      (best, task, index) => (task.dueUs < (waiting[best]?.dueUs ?? Number.POSITIVE_INFINITY) ? index : best),
      0,
    );
  return waiting.splice(at, 1)[0];
}
