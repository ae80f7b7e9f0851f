/** Something to be done at a host, not before an instant. */
interface Entry<Task> {
  readonly task: Task;
  readonly lane: string;
  readonly dueUs: number;
  readonly order: number;
}

interface Lane<Task> {
  readonly name: string;
  /** Due, in the order in which they came. */
  readonly line: Task[];
  /** Nothing is taken before this. */
  freeUs: number;
  /** It is full, and nobody can know until when: `unpark` ends that at once. */
  isParked: boolean;
  /** Somebody was sent back: from now on one goes at a time, so that not all of them try in vain. */
  isTight: boolean;
}

/** Long enough for a refusal to be known before the next one is taken. */
const TIGHT_US = 1000;

/**
 * Who goes next. Each host and role is a lane; the lane that has been free the longest is served first, so that hosts
 * take turns and a slow one is in nobody's way. A lane exists only while somebody is in it, or it is not free yet.
 *
 * This schedules our own patience and nothing else: whether a request may go is decided at the hub's gate, which
 * answers with the time to come back at.
 */
export class Schedule<Task> {
  readonly #lanes = new Map<string, Lane<Task>>();
  /** Not due yet, as a heap by instant. */
  readonly #later: Entry<Task>[] = [];
  #orders = 0;
  #size = 0;

  /** How many wait, due or not. */
  get size(): number {
    return this.#size;
  }

  /** @param dueUs now or earlier for at once */
  add(task: Task, lane: string, dueUs: number, nowUs: number): void {
    this.#size += 1;
    if (dueUs <= nowUs) this.#lane(lane, nowUs).line.push(task);
    else this.#push({ task, lane, dueUs, order: ++this.#orders });
  }

  /** Puts one back to the head of its lane, which is not free before `freeUs`. */
  putBack(task: Task, lane: string, freeUs: number, nowUs: number): void {
    this.#size += 1;
    const known = this.#lane(lane, nowUs);
    known.line.unshift(task);
    known.freeUs = Math.max(known.freeUs, freeUs);
    known.isTight = true;
  }

  /** The same for a lane in which every slot is taken: until `unpark`, or `untilUs` if nobody has a word by then. */
  park(task: Task, lane: string, untilUs: number, nowUs: number): void {
    this.putBack(task, lane, untilUs, nowUs);
    this.#lane(lane, nowUs).isParked = true;
  }

  /** Somewhere a slot has become free. */
  unpark(nowUs: number): void {
    for (const lane of this.#lanes.values()) {
      if (!lane.isParked) continue;
      lane.isParked = false;
      lane.freeUs = Math.min(lane.freeUs, nowUs);
    }
  }

  /** One that may go now; undefined when nobody may. */
  take(nowUs: number): { readonly task: Task; readonly lane: string } | undefined {
    this.#wake(nowUs);
    let best: Lane<Task> | undefined;
    for (const lane of this.#lanes.values()) {
      if (lane.line.length === 0) {
        if (lane.freeUs <= nowUs) this.#lanes.delete(lane.name);
        continue;
      }
      if (lane.freeUs > nowUs) continue;
      if (best === undefined || lane.freeUs < best.freeUs) best = lane;
    }
    const task = best?.line.shift();
    if (best === undefined || task === undefined) return undefined;
    this.#size -= 1;
    // Behind those who have been free for longer, at the end of the round.
    best.freeUs = best.isTight ? nowUs + TIGHT_US : nowUs;
    best.isParked = false;
    this.#lanes.delete(best.name);
    this.#lanes.set(best.name, best);
    return { task, lane: best.name };
  }

  /** The instant at which somebody might go next; undefined when nobody waits. */
  nextUs(): number | undefined {
    let nextUs = this.#later[0]?.dueUs ?? Number.POSITIVE_INFINITY;
    for (const { line, freeUs } of this.#lanes.values()) {
      if (line.length > 0) nextUs = Math.min(nextUs, freeUs);
    }
    return Number.isFinite(nextUs) ? nextUs : undefined;
  }

  /** Each lane in which somebody waits, with how many, and until when as far as that is known. */
  *lanes(): IterableIterator<{ readonly lane: string; readonly waiting: number; readonly freeUs: number }> {
    for (const { name, line, freeUs } of this.#lanes.values()) {
      if (line.length > 0) yield { lane: name, waiting: line.length, freeUs };
    }
  }

  /** Everybody who waits, in no order. */
  *tasks(): IterableIterator<Task> {
    for (const { task } of this.#later) yield task;
    for (const { line } of this.#lanes.values()) yield* line;
  }

  #wake(nowUs: number): void {
    for (let first = this.#later[0]; first !== undefined && first.dueUs <= nowUs; first = this.#later[0]) {
      this.#pop();
      this.#lane(first.lane, nowUs).line.push(first.task);
    }
  }

  #lane(name: string, nowUs: number): Lane<Task> {
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { name, line: [], freeUs: nowUs, isParked: false, isTight: false };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  #push(entry: Entry<Task>): void {
    const heap = this.#later;
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
    const heap = this.#later;
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

function isSooner<Task>(a: Entry<Task>, b: Entry<Task>): boolean {
  return a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.order < b.order);
}
