import { Heap } from "./heap.ts";

/** A task that must not start before `dueUs`. */
interface DelayedTask<Task> {
  readonly task: Task;
  readonly queueName: string;
  readonly dueUs: number;
  /** Keeps tasks with the same due time in the order in which they were added. */
  readonly order: number;
}

interface HostQueue<Task> {
  readonly name: string;
  /** Tasks that are due, first in, first out. */
  readonly tasks: Task[];
  /** Tasks of this queue that are not due yet. */
  delayed: number;
  /** While fewer than this many tasks wait, none is taken before `lingerUntilUs`: one request may serve several tasks. */
  fullAt: number;
  lingerUntilUs: number;
  /** No task is taken before this time: the last one was taken just before. */
  notBeforeUs: number;
  /** The hub has refused tasks: none is taken before this time. */
  refusedUntilUs: number;
  /**
   * Every slot of the host is in use: no task is taken before this time, or before `slotFreed`. The time at which a slot
   * becomes free is not known.
   */
  slotWaitUntilUs: number;
  /**
   * The hub has refused a task. Until the queue is deleted, at most one task is taken per `SPACING_US`, so that the others
   * are not refused too.
   */
  isSpaced: boolean;
}

export interface WaitingTasks {
  readonly queue: string;
  readonly waiting: number;
  /** When the first of these tasks may start, apart from lingering. */
  readonly notBeforeUs: number;
}

/** Time for a refusal to become known before the next task of the queue is taken. */
const SPACING_US = 1000;

/**
 * Decides which task starts next. Each host and role has a queue; of the ready queues, the one with the earliest
 * `notBeforeUs` goes first, so that hosts take turns and a slow host delays no other. A queue exists while it has tasks or is not ready yet.
 *
 * Rates are not decided here: the hub's gate grants or refuses a request, and a refusal says when to try again.
 */
export class HostQueues<Task> {
  readonly #queues = new Map<string, HostQueue<Task>>();
  readonly #delayed = new Heap<DelayedTask<Task>>(
    (a, b) => a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.order < b.order),
  );
  #lastOrder = 0;
  #size = 0;

  /** Number of tasks, due or delayed. */
  get size(): number {
    return this.#size;
  }

  /** Number of queues, also of those that have no task but must wait. */
  get queueCount(): number {
    return this.#queues.size;
  }

  /** Number of tasks of one queue, due or delayed. */
  count(queueName: string): number {
    const queue = this.#queues.get(queueName);
    return queue === undefined ? 0 : queue.tasks.length + queue.delayed;
  }

  /** @param dueUs not before this time; `nowUs` or earlier for at once */
  add(task: Task, queueName: string, dueUs: number, nowUs: number): void {
    this.#size += 1;
    const queue = this.#queue(queueName, nowUs);
    if (dueUs <= nowUs) queue.tasks.push(task);
    else {
      queue.delayed += 1;
      this.#delayed.push({ task, queueName, dueUs, order: ++this.#lastOrder });
    }
  }

  /** Lets the queue wait until `untilUs` for `fullAt` tasks, unless it waits already. */
  linger(queueName: string, untilUs: number, fullAt: number, nowUs: number): void {
    const queue = this.#queue(queueName, nowUs);
    queue.fullAt = fullAt;
    if (queue.lingerUntilUs <= nowUs) queue.lingerUntilUs = untilUs;
  }

  /** Whether every task waits for further tasks of its queue. If none is in flight either, no further one can come. */
  isOnlyLingering(nowUs: number): boolean {
    for (const queue of this.#queues.values()) {
      const { tasks, delayed, fullAt, lingerUntilUs } = queue;
      const isLingering = tasks.length < fullAt && lingerUntilUs > nowUs && blockedUntilUs(queue) <= nowUs;
      if (delayed > 0 || (tasks.length > 0 && !isLingering)) return false;
    }
    return true;
  }

  /** Lets no queue wait for further tasks. */
  endLinger(): void {
    for (const queue of this.#queues.values()) queue.lingerUntilUs = 0;
  }

  /** Removes and returns due tasks of a queue that `isWanted` selects, at most `limit`. */
  takeMore(queueName: string, limit: number, isWanted: (task: Task) => boolean): readonly Task[] {
    const queue = this.#queues.get(queueName);
    if (queue === undefined || limit <= 0) return [];
    const taken: Task[] = [];
    const kept = queue.tasks.filter(task => {
      if (taken.length >= limit || !isWanted(task)) return true;
      taken.push(task);
      return false;
    });
    queue.tasks.splice(0, queue.tasks.length, ...kept);
    this.#size -= taken.length;
    endLingerIfEmpty(queue);
    return taken;
  }

  /** Removes and returns due tasks that `isWanted` selects, at most `limit`: of each queue those that came last. */
  takeLast(
    limit: number,
    isWanted: (task: Task, queue: string) => boolean,
  ): readonly { readonly task: Task; readonly queue: string }[] {
    const taken: { readonly task: Task; readonly queue: string }[] = [];
    for (const queue of this.#queues.values()) {
      const wanted = queue.tasks.filter(task => isWanted(task, queue.name));
      const last = new Set(wanted.slice(Math.max(0, wanted.length - (limit - taken.length))));
      for (const task of this.takeMore(queue.name, last.size, each => last.has(each)))
        taken.push({ task, queue: queue.name });
    }
    return taken;
  }

  /**
   * Puts a refused task back to the head of its queue. The whole queue waits until `notBeforeUs`. If it waits already, the
   * earlier time counts: tasks that are refused at the same time wait for each other, and only the first one for the host.
   */
  requeue(task: Task, queueName: string, notBeforeUs: number, nowUs: number): void {
    const queue = this.#putBack(task, queueName, nowUs);
    const isRefused = queue.refusedUntilUs > nowUs;
    if (notBeforeUs > nowUs)
      queue.refusedUntilUs = isRefused ? Math.min(queue.refusedUntilUs, notBeforeUs) : notBeforeUs;
  }

  /** Like `requeue`, for a host without a free slot: the queue waits for `slotFreed`, at the latest until `untilUs`. */
  requeueUntilSlot(task: Task, queueName: string, untilUs: number, nowUs: number): void {
    const queue = this.#putBack(task, queueName, nowUs);
    queue.slotWaitUntilUs = Math.max(queue.slotWaitUntilUs, untilUs);
  }

  /** A request has ended. Every queue that waits for a slot is tried again: slots may be shared between hosts. */
  slotFreed(): void {
    for (const queue of this.#queues.values()) queue.slotWaitUntilUs = 0;
  }

  /** The queue need not wait any longer because of a refusal. */
  endRefusal(queueName: string): void {
    const queue = this.#queues.get(queueName);
    if (queue !== undefined) queue.refusedUntilUs = 0;
  }

  /** The queues that wait because of a refusal, and those of the delayed tasks that `isRefused` selects. */
  refusedQueues(nowUs: number, isRefused: (task: Task) => boolean): ReadonlySet<string> {
    const refused = [...this.#queues.values()].filter(({ refusedUntilUs }) => refusedUntilUs > nowUs);
    const delayed = this.#delayed.items.filter(({ task }) => isRefused(task));
    return new Set([...refused.map(({ name }) => name), ...delayed.map(({ queueName }) => queueName)]);
  }

  /** These queues need not wait any longer, and their delayed tasks that `isRefused` selects are due. */
  endRefusals(queueNames: ReadonlySet<string>, isRefused: (task: Task) => boolean): void {
    if (queueNames.size === 0) return;
    for (const name of queueNames) this.endRefusal(name);
    const due = this.#delayed.take(({ queueName, task }) => queueNames.has(queueName) && isRefused(task));
    for (const { queueName, task } of due.toSorted((one, other) => one.order - other.order)) {
      const queue = this.#queues.get(queueName);
      if (queue === undefined) continue;
      queue.delayed -= 1;
      queue.tasks.push(task);
    }
  }

  /** The next task that may start; undefined if no queue is ready. */
  take(nowUs: number): { readonly task: Task; readonly queue: string } | undefined {
    this.#moveDue(nowUs);
    let best: HostQueue<Task> | undefined;
    for (const queue of this.#queues.values()) {
      if (queue.tasks.length === 0) {
        if (blockedUntilUs(queue) <= nowUs && queue.delayed === 0) this.#queues.delete(queue.name);
        continue;
      }
      if (readyUs(queue) > nowUs) continue;
      if (best === undefined || startUs(queue) < startUs(best)) best = queue;
    }
    const task = best?.tasks.shift();
    if (best === undefined || task === undefined) return undefined;
    this.#size -= 1;
    // The queue moves behind all others that are ready.
    best.notBeforeUs = best.isSpaced ? nowUs + SPACING_US : nowUs;
    best.slotWaitUntilUs = 0;
    endLingerIfEmpty(best);
    this.#queues.delete(best.name);
    this.#queues.set(best.name, best);
    return { task, queue: best.name };
  }

  /** When `take` may next return a task; undefined if there are no tasks. */
  nextUs(): number | undefined {
    let nextUs = this.#delayed.first?.dueUs ?? Number.POSITIVE_INFINITY;
    for (const queue of this.#queues.values()) if (queue.tasks.length > 0) nextUs = Math.min(nextUs, readyUs(queue));
    return Number.isFinite(nextUs) ? nextUs : undefined;
  }

  /** Every queue with due tasks. */
  *queues(): IterableIterator<WaitingTasks> {
    for (const queue of this.#queues.values()) {
      const { name, tasks } = queue;
      if (tasks.length > 0) yield { queue: name, waiting: tasks.length, notBeforeUs: blockedUntilUs(queue) };
    }
  }

  /** Every queue with tasks that are not due yet. Reads all of them. */
  delayedQueues(): IterableIterator<WaitingTasks> {
    const queues = new Map<string, WaitingTasks>();
    for (const { queueName: queue, dueUs } of this.#delayed.items) {
      const { waiting, notBeforeUs } = queues.get(queue) ?? { waiting: 0, notBeforeUs: Number.POSITIVE_INFINITY };
      queues.set(queue, { queue, waiting: waiting + 1, notBeforeUs: Math.min(notBeforeUs, dueUs) });
    }
    return queues.values();
  }

  #putBack(task: Task, queueName: string, nowUs: number): HostQueue<Task> {
    this.#size += 1;
    const queue = this.#queue(queueName, nowUs);
    queue.tasks.unshift(task);
    queue.isSpaced = true;
    return queue;
  }

  #moveDue(nowUs: number): void {
    for (let first = this.#delayed.first; first !== undefined && first.dueUs <= nowUs; first = this.#delayed.first) {
      this.#delayed.pop();
      const queue = this.#queue(first.queueName, nowUs);
      queue.delayed -= 1;
      queue.tasks.push(first.task);
    }
  }

  #queue(name: string, nowUs: number): HostQueue<Task> {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = {
        name,
        tasks: [],
        delayed: 0,
        fullAt: 0,
        lingerUntilUs: 0,
        notBeforeUs: nowUs,
        refusedUntilUs: 0,
        slotWaitUntilUs: 0,
        isSpaced: false,
      };
      this.#queues.set(name, queue);
    }
    return queue;
  }
}

/** The tasks that are added later wait for as long as these did. */
function endLingerIfEmpty(queue: HostQueue<unknown>): void {
  if (queue.tasks.length === 0) queue.lingerUntilUs = 0;
}

function readyUs(queue: HostQueue<unknown>): number {
  const blockedUs = blockedUntilUs(queue);
  return queue.tasks.length >= queue.fullAt ? blockedUs : Math.max(blockedUs, queue.lingerUntilUs);
}

function blockedUntilUs(queue: HostQueue<unknown>): number {
  return Math.max(startUs(queue), queue.slotWaitUntilUs);
}

/** Since when the queue is ready, or from when it will be, if there are slots. */
function startUs({ notBeforeUs, refusedUntilUs }: HostQueue<unknown>): number {
  return Math.max(notBeforeUs, refusedUntilUs);
}
