/** A task on the clock of the simulated world. Servers and laws use this clock; processes have their own. */
export interface ScheduledTask {
  atUs: number;
  /** When it was scheduled. A blocked event loop runs its overdue tasks in this order. */
  readonly dueUs: number;
  readonly order: number;
  /** The event loop that runs it; undefined for network and servers, which never stall. */
  readonly loop: EventLoop | undefined;
  /** Called with the scheduled time, because network and servers do not wait while a process computes. */
  readonly run: (dueUs: number) => void;
  isCancelled: boolean;
}

/** The event loop of a process: it may be blocked, and it may be dead. */
export interface EventLoop {
  /** No task runs on it before this instant. */
  readonly blockedUntilUs: number;
  readonly isDead: boolean;
}

/** A priority queue of tasks, ordered by time and then by insertion. */
export class Clock {
  nowUs = 0;
  #count = 0;
  readonly #heap: ScheduledTask[] = [];

  at(atUs: number, loop: EventLoop | undefined, run: (dueUs: number) => void): ScheduledTask {
    const task = { atUs, dueUs: atUs, order: this.#count, loop, run, isCancelled: false };
    this.#count += 1;
    this.#push(task);
    return task;
  }

  /** Removes the next task whose event loop is not blocked and advances to its time; undefined when none is left. */
  next(): ScheduledTask | undefined {
    for (let task = this.#pop(); task !== undefined; task = this.#pop()) {
      if (task.isCancelled || task.loop?.isDead) continue;
      const wakeUs = task.loop?.blockedUntilUs ?? 0;
      if (wakeUs > task.atUs) {
        task.atUs = wakeUs;
        this.#push(task);
        continue;
      }
      this.nowUs = Math.max(this.nowUs, task.atUs);
      return task;
    }
    return undefined;
  }

  /** Lets time pass while a process computes: tasks that fall due meanwhile run late. */
  advance(us: number): void {
    this.nowUs += us;
  }

  #push(task: ScheduledTask): void {
    const heap = this.#heap;
    let index = heap.push(task) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as ScheduledTask;
      if (isBefore(above, task)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = task;
  }

  #pop(): ScheduledTask | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as ScheduledTask, heap[child] as ScheduledTask))
        child += 1;
      if (isBefore(last, heap[child] as ScheduledTask)) break;
      heap[index] = heap[child] as ScheduledTask;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(a: ScheduledTask, b: ScheduledTask): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && (a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.order < b.order)));
}
