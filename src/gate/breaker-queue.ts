import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { Waiter } from "../limiter/wait-queue.ts";
import type { Time, Timer } from "../time/time.ts";

type Blocker = Denial["blocker"];

interface Cell {
  readonly waiters: Set<Waiter>;
  timer: Timer | undefined;
}

/**
 * Where those wait whose host is cut off, if they may wait that long.
 * They stand in nobody's way: other hosts of the same lane go on. When the blocker may be passed again they go back
 * to the end of their line.
 */
export class Cooling {
  readonly #time: Time;
  readonly #rejoin: (waiter: Waiter) => void;
  readonly #cells = new Map<Blocker, Cell>();
  readonly #cellOf = new Map<Waiter, Blocker>();

  constructor(breakers: BreakerRegistry, time: Time, rejoin: (waiter: Waiter) => void) {
    this.#time = time;
    this.#rejoin = rejoin;
    breakers.onPassable(blocker => this.#open(blocker));
  }

  get waiting(): number {
    return this.#cellOf.size;
  }

  /** Whom somebody waits for. */
  blockers(): IterableIterator<Blocker> {
    return this.#cells.keys();
  }

  has(waiter: Waiter): boolean {
    return this.#cellOf.has(waiter);
  }

  hold(waiter: Waiter, { blocker, untilUs }: Denial): void {
    const cell = this.#cells.get(blocker) ?? { waiters: new Set(), timer: undefined };
    this.#cells.set(blocker, cell);
    cell.waiters.add(waiter);
    this.#cellOf.set(waiter, blocker);
    cell.timer ??= this.#arm(blocker, untilUs);
  }

  leave(waiter: Waiter): void {
    const blocker = this.#cellOf.get(waiter);
    const cell = blocker && this.#cells.get(blocker);
    if (blocker === undefined || cell === undefined) return;
    this.#cellOf.delete(waiter);
    cell.waiters.delete(waiter);
    if (cell.waiters.size > 0) return;
    cell.timer?.cancel();
    this.#cells.delete(blocker);
  }

  #arm(blocker: Blocker, untilUs: number): Timer {
    return this.#time.setTimer((untilUs - this.#time.monotonicUs()) / 1000, () => this.#open(blocker));
  }

  /**
   * All go back to their lines at once. Whoever is not let through, because a timer was early or a half-open circuit
   * has its probe, is denied by something that will end, and comes back here: nobody is ever left waiting for nothing.
   */
  #open(blocker: Blocker): void {
    const cell = this.#cells.get(blocker);
    if (cell === undefined) return;
    const leaving = [...cell.waiters];
    for (const waiter of leaving) this.leave(waiter);
    for (const waiter of leaving) this.#rejoin(waiter);
  }
}
