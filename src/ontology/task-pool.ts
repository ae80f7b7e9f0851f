import { BusyError, RejectedError } from "../errors.ts";
import type { Time } from "../time/time.ts";

/** How a request stands at the gate: `fail` never waits, `block` waits for its turn. */
export type WaitMode = "fail" | "block";

export interface TaskPoolOptions {
  readonly time: Time;
  /** How many at a time. */
  readonly parallel: number;
  readonly signal?: AbortSignal | undefined;
  /** Told when an item was refused and put back, and for how long. */
  readonly onDeferred?: ((index: number, refusal: RejectedError) => void) | undefined;
}

interface PoolTask<Item> {
  readonly index: number;
  readonly item: Item;
  dueUs: number;
  refusals: number;
}

/**
 * Does many things at hosts that are full at different times. Each is tried without waiting; what a gate refuses is put
 * back until its time, and something else is done meanwhile. Only when nothing else is left does anybody stand in line,
 * and then at the gate, which knows best: nothing here sleeps.
 * Results come in the order of the items. Rejects with the first error of `attempt` that is not a refusal in fail mode.
 */
export async function runTaskPool<Item, Result>(
  items: readonly Item[],
  attempt: (item: Item, mode: WaitMode) => Promise<Result>,
  { time, parallel, signal, onDeferred }: TaskPoolOptions,
): Promise<readonly Result[]> {
  const open: PoolTask<Item>[] = items.map((item, index) => ({ index, item, dueUs: 0, refusals: 0 }));
  const results = new Array<Result>(items.length);
  const work = async (): Promise<void> => {
    for (let task = next(open, time); task !== undefined; task = next(open, time)) {
      signal?.throwIfAborted();
      const isDue = task.dueUs <= time.monotonicUs();
      try {
        results[task.index] = await attempt(task.item, isDue ? "fail" : "block");
      } catch (error) {
        if (!isDue || !(error instanceof RejectedError)) throw error;
        task.refusals += 1;
        task.dueUs = time.monotonicUs() + pauseUs(error, task.refusals);
        open.push(task);
        onDeferred?.(task.index, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(parallel, items.length)) }, work));
  return results;
}

/** A slot is free nobody knows when: the second time around its turn is waited for. */
function pauseUs(refusal: RejectedError, refusals: number): number {
  if (refusal instanceof BusyError || refusal.retryAfterMs === undefined)
    return refusals > 1 ? Number.MAX_SAFE_INTEGER : 1000;
  return Math.max(1, refusal.retryAfterMs * 1000);
}

/** The first that is due, in the order they came; or else the one that is due soonest, to stand in line with. */
function next<Item>(open: PoolTask<Item>[], time: Time): PoolTask<Item> | undefined {
  const nowUs = time.monotonicUs();
  let at = open.findIndex(task => task.dueUs <= nowUs);
  if (at < 0)
    at = open.reduce(
      (best, task, index) => (task.dueUs < (open[best]?.dueUs ?? Number.POSITIVE_INFINITY) ? index : best),
      0,
    );
  return open.splice(at, 1)[0];
}
