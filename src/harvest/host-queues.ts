/** Something to be done at a host, not before an instant. */
interface DelayedTask<Task> {
  readonly task: Task;
  readonly queue: string;
  readonly dueUs: number;
  readonly order: number;
}

interface HostQueue<Task> {
  readonly name: string;
  /** Due, in the order in which they came. */
  readonly tasks: Task[];
  /** Nothing is taken before this. */
  notBeforeUs: number;
  /** It is full, and nobody can know until when: `unpark` ends that at once. */
  isWaitingForSlot: boolean;
  /** Somebody was sent back: from now on one goes at a time, so that not all of them try in vain. */
  isOneAtATime: boolean;
}

/** Long enough for a refusal to be known before the next one is taken. */
const SPACING_US = 1000;

/**
 * Who goes next. Each host and role is a lane; the lane that has been free the longest is served first, so that hosts
 * take turns and a slow one is in nobody's way. A lane exists only while somebody is in it, or it is not free yet.
 *
 * This schedules our own patience and nothing else: whether a request may go is decided at the hub's gate, which
 * answers with the time to come back at.
 */
export class HostQueues<Task> {
  readonly #queues = new Map<string, HostQueue<Task>>();
  /** Not due yet, as a heap by instant. */
  readonly #delayed: DelayedTask<Task>[] = [];
  #orders = 0;
  #size = 0;

  /** How many wait, due or not. */
  get size(): number {
    return this.#size;
  }

  /** @param dueUs now or earlier for at once */
  add(task: Task, queue: string, dueUs: number, nowUs: number): void {
    this.#size += 1;
    if (dueUs <= nowUs) this.#queue(queue, nowUs).tasks.push(task);
    else this.#push({ task, queue, dueUs, order: ++this.#orders });
  }

  /** Puts one back to the head of its lane, which is not free before `freeUs`. */
  requeue(task: Task, queue: string, notBeforeUs: number, nowUs: number): void {
    this.#size += 1;
    const known = this.#queue(queue, nowUs);
    known.tasks.unshift(task);
    known.notBeforeUs = Math.max(known.notBeforeUs, notBeforeUs);
    known.isOneAtATime = true;
  }

  /** The same for a lane in which every slot is taken: until `unpark`, or `untilUs` if nobody has a word by then. */
  requeueUntilSlot(task: Task, queue: string, untilUs: number, nowUs: number): void {
    this.requeue(task, queue, untilUs, nowUs);
    this.#queue(queue, nowUs).isWaitingForSlot = true;
  }

  /** Somewhere a slot has become free. */
  slotFreed(nowUs: number): void {
    for (const queue of this.#queues.values()) {
      if (!queue.isWaitingForSlot) continue;
      queue.isWaitingForSlot = false;
      queue.notBeforeUs = Math.min(queue.notBeforeUs, nowUs);
    }
  }

  /** One that may go now; undefined when nobody may. */
  take(nowUs: number): { readonly task: Task; readonly queue: string } | undefined {
    this.#moveDue(nowUs);
    let best: HostQueue<Task> | undefined;
    for (const queue of this.#queues.values()) {
      if (queue.tasks.length === 0) {
        if (queue.notBeforeUs <= nowUs) this.#queues.delete(queue.name);
        continue;
      }
      if (queue.notBeforeUs > nowUs) continue;
      if (best === undefined || queue.notBeforeUs < best.notBeforeUs) best = queue;
    }
    const task = best?.tasks.shift();
    if (best === undefined || task === undefined) return undefined;
    this.#size -= 1;
    // Behind those who have been free for longer, at the end of the round.
    best.notBeforeUs = best.isOneAtATime ? nowUs + SPACING_US : nowUs;
    best.isWaitingForSlot = false;
    this.#queues.delete(best.name);
    this.#queues.set(best.name, best);
    return { task, queue: best.name };
  }

  /** The instant at which somebody might go next; undefined when nobody waits. */
  nextUs(): number | undefined {
    let nextUs = this.#delayed[0]?.dueUs ?? Number.POSITIVE_INFINITY;
    for (const { tasks, notBeforeUs } of this.#queues.values()) {
      if (tasks.length > 0) nextUs = Math.min(nextUs, notBeforeUs);
    }
    return Number.isFinite(nextUs) ? nextUs : undefined;
  }

  /** Each lane in which somebody waits, with how many, and until when as far as that is known. */
  *queues(): IterableIterator<{ readonly queue: string; readonly waiting: number; readonly notBeforeUs: number }> {
    for (const { name, tasks, notBeforeUs } of this.#queues.values()) {
      if (tasks.length > 0) yield { queue: name, waiting: tasks.length, notBeforeUs };
    }
  }

  /** Everybody who waits, in no order. */
  *tasks(): IterableIterator<Task> {
    for (const { task } of this.#delayed) yield task;
    for (const { tasks } of this.#queues.values()) yield* tasks;
  }

  #moveDue(nowUs: number): void {
    for (let first = this.#delayed[0]; first !== undefined && first.dueUs <= nowUs; first = this.#delayed[0]) {
      this.#pop();
      this.#queue(first.queue, nowUs).tasks.push(first.task);
    }
  }

  #queue(name: string, nowUs: number): HostQueue<Task> {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = { name, tasks: [], notBeforeUs: nowUs, isWaitingForSlot: false, isOneAtATime: false };
      this.#queues.set(name, queue);
    }
    return queue;
  }

  #push(entry: DelayedTask<Task>): void {
    const heap = this.#delayed;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !isSooner(entry, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#delayed;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      const left = heap[down];
      const right = heap[down + 1];
      if (left === undefined) break;
      const child = right !== undefined && isSooner(right, left) ? right : left;
      if (child === right) down += 1;
      if (!isSooner(child, last)) break;
      heap[at] = child;
      at = down;
    }
    heap[at] = last;
  }
}

function isSooner<Task>(a: DelayedTask<Task>, b: DelayedTask<Task>): boolean {
  return a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.order < b.order);
}
