import type { WaitingTasks } from "./host-queues.ts";

/** A queue of works that wait in the manifest. */
interface WaitingQueue {
  works: number;
  /** When the first of these works may start. */
  notBeforeUs: number;
  /** The quota of the host is spent until then; undefined if not. */
  blocked: { readonly untilUs: number; readonly message: string } | undefined;
}

/**
 * How many works wait in the manifest, by the queue of their next step, and which queue is served next. Queues take
 * turns, so that a long queue of a slow host delays no other.
 */
export class Backlog {
  readonly #queues = new Map<string, WaitingQueue>();
  #works = 0;

  /** Works that wait, over all queues. */
  get works(): number {
    return this.#works;
  }

  /** Every queue with works. */
  *queues(): IterableIterator<WaitingTasks> {
    for (const [name, queue] of this.#queues)
      if (queue.works > 0) yield { queue: name, waiting: queue.works, notBeforeUs: startUs(queue) };
  }

  add(queue: string, works: number, notBeforeUs = 0): void {
    const known = this.#queues.get(queue);
    if (known === undefined) this.#queues.set(queue, { works, notBeforeUs, blocked: undefined });
    else {
      known.notBeforeUs = known.works === 0 ? notBeforeUs : Math.min(known.notBeforeUs, notBeforeUs);
      known.works += works;
    }
    this.#works += works;
  }

  /** Sets a queue to the numbers of the manifest. A queue without works is deleted. */
  set(queue: string, works: number, notBeforeUs: number): void {
    this.#works += works - (this.#queues.get(queue)?.works ?? 0);
    if (works === 0) this.#queues.delete(queue);
    else this.#queues.set(queue, { works, notBeforeUs, blocked: this.#queues.get(queue)?.blocked });
  }

  clear(): void {
    this.#queues.clear();
    this.#works = 0;
  }

  /** No work of the queue is taken before `untilUs`, because its host has no quota left. */
  block(queue: string, untilUs: number, message: string): void {
    const known = this.#queues.get(queue);
    if (known !== undefined) known.blocked = { untilUs, message };
  }

  /** The quota of the queue's host is no longer spent. */
  unblock(queue: string): void {
    const known = this.#queues.get(queue);
    if (known !== undefined) known.blocked = undefined;
  }

  /** Why works of the queue wait, if its host has no quota left. */
  messageOf(queue: string): string | undefined {
    return this.#queues.get(queue)?.blocked?.message;
  }

  /** The queues whose host has no quota left until after `us`. */
  blockedAfter(us: number): readonly string[] {
    return [...this.#queues].flatMap(([name, { blocked }]) => (blocked && blocked.untilUs > us ? [name] : []));
  }

  /** The queue that was served least recently among those with works that may start; it moves behind all others. */
  take(nowUs: number, isWanted: (queue: string) => boolean): string | undefined {
    for (const [name, queue] of this.#queues) {
      if (startUs(queue) > nowUs || queue.works === 0 || !isWanted(name)) continue;
      this.#queues.delete(name);
      this.#queues.set(name, queue);
      return name;
    }
    return undefined;
  }

  /** When the first work may start, among the queues that cannot start now; undefined if there is none. */
  nextUsAfter(nowUs: number): number | undefined {
    let nextUs = Number.POSITIVE_INFINITY;
    for (const queue of this.#queues.values())
      if (queue.works > 0 && startUs(queue) > nowUs) nextUs = Math.min(nextUs, startUs(queue));
    return Number.isFinite(nextUs) ? nextUs : undefined;
  }
}

function startUs({ notBeforeUs, blocked }: WaitingQueue): number {
  return Math.max(notBeforeUs, blocked?.untilUs ?? 0);
}
