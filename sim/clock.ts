/** The time of the world: what servers go by, and what laws are judged by. */
export interface Alarm {
  atUs: number;
  /** When it was to be: a loop that was asleep goes through what it missed in that order. */
  readonly dueUs: number;
  readonly order: number;
  /** Whose event loop runs it; undefined for the world outside, which never stalls. */
  readonly loop: Loop | undefined;
  /** Told when it was to be: the world outside does not wait while a process computes. */
  readonly run: (dueUs: number) => void;
  isCancelled: boolean;
}

/** An event loop: it may stand still, and it may die. */
export interface Loop {
  /** Nothing runs on it before this. */
  readonly asleepUntilUs: number;
  readonly isDead: boolean;
}

/** A queue of what is going to happen, by time and then by the order in which it was planned. */
export class Clock {
  nowUs = 0;
  #count = 0;
  readonly #heap: Alarm[] = [];

  at(atUs: number, loop: Loop | undefined, run: (dueUs: number) => void): Alarm {
    const alarm = { atUs, dueUs: atUs, order: this.#count, loop, run, isCancelled: false };
    this.#count += 1;
    this.#push(alarm);
    return alarm;
  }

  /** Moves to the next alarm that its loop is awake for and takes it out; undefined when nothing is left to happen. */
  next(): Alarm | undefined {
    for (let alarm = this.#pop(); alarm !== undefined; alarm = this.#pop()) {
      if (alarm.isCancelled || alarm.loop?.isDead) continue;
      const wakeUs = alarm.loop?.asleepUntilUs ?? 0;
      if (wakeUs > alarm.atUs) {
        alarm.atUs = wakeUs;
        this.#push(alarm);
        continue;
      }
      this.nowUs = Math.max(this.nowUs, alarm.atUs);
      return alarm;
    }
    return undefined;
  }

  /** Time that passes while somebody computes: what falls due meanwhile comes late. */
  creep(us: number): void {
    this.nowUs += us;
  }

  #push(alarm: Alarm): void {
    const heap = this.#heap;
    let index = heap.push(alarm) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Alarm;
      if (isBefore(above, alarm)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = alarm;
  }

  #pop(): Alarm | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Alarm, heap[child] as Alarm)) child += 1;
      if (isBefore(last, heap[child] as Alarm)) break;
      heap[index] = heap[child] as Alarm;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(a: Alarm, b: Alarm): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && (a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.order < b.order)));
}
