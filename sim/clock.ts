/** The time of the world: what servers go by, and what laws are judged by. */
export interface ScheduledTask {
  atUs: number;
  /** When it was to be: a loop that was asleep goes through what it missed in that order. */
  readonly dueUs: number;
  readonly order: number;
  /** Whose event loop runs it; undefined for the world outside, which never stalls. */
  readonly loop: EventLoop | undefined;
  /** Told when it was to be: the world outside does not wait while a process computes. */
  readonly run: (dueUs: number) => void;
  isCancelled: boolean;
}

/** An event loop: it may stand still, and it may die. */
export interface EventLoop {
  /** Nothing runs on it before this. */
  readonly blockedUntilUs: number;
  readonly isDead: boolean;
}

/** A queue of what is going to happen, by time and then by the order in which it was planned. */
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

  /** Moves to the next alarm that its loop is awake for and takes it out; undefined when nothing is left to happen. */
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

  /** Time that passes while somebody computes: what falls due meanwhile comes late. */
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
