/**
 * Virtual time: replaces the global timers and clocks, which the other libraries use, and is the `Time` of docstokg. An
 * hour of waiting takes only as long as the work in it.
 */
import { sleep } from "../../src/time/sleep.ts";
import type { Time, Timer } from "../../src/time/time.ts";

interface VirtualTimer {
  dueMs: number;
  readonly order: number;
  readonly everyMs: number | undefined;
  readonly fire: () => void;
  isCancelled: boolean;
}

/** The handle of a timer. `ref` and `unref` have no effect here. */
class Handle {
  readonly armed: VirtualTimer;

  constructor(armed: VirtualTimer) {
    this.armed = armed;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.dispose](): void {
    this.armed.isCancelled = true;
  }
}

/** Turns of the real event loop before time advances, so that responses that have arrived are read first. */
const TURNS = 4;
const EPOCH_MS = Date.UTC(2026, 0, 1);

export class VirtualClock {
  #nowMs = 0;
  #order = 0;
  readonly #heap: VirtualTimer[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Replaces the timers and clocks of the process. */
  install(): void {
    const clear = (handle: unknown) => {
      if (handle instanceof Handle) handle.armed.isCancelled = true;
    };
    const RealDate = Date;
    const wallMs = () => Math.floor(EPOCH_MS + this.#nowMs);
    class VirtualDate extends RealDate {
      constructor(...args: readonly unknown[]) {
        if (args.length === 0) super(wallMs());
        else super(...(args as [number]));
      }

      static override now(): number {
        return wallMs();
      }
    }
    Object.assign(globalThis, {
      Date: VirtualDate,
      setTimeout: (fire: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
        this.#arm(ms, undefined, () => fire(...args)),
      setInterval: (fire: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
        this.#arm(ms, Math.max(1, ms), () => fire(...args)),
      clearTimeout: clear,
      clearInterval: clear,
    });
    performance.now = () => this.#nowMs;
  }

  /** Advances time until the work is done. */
  async runUntil(work: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    work.then(over, over);
    for (;;) {
      for (let turn = 0; turn < TURNS; turn += 1) await new Promise(resolve => setImmediate(resolve));
      if (isOver) return;
      if (!this.#advance()) throw new Error("all calls wait, and no timer is armed");
    }
  }

  time(): Time {
    const time: Time = {
      monotonicUs: () => Math.floor(this.#nowMs * 1000),
      machineUs: () => Math.floor(this.#nowMs * 1000),
      wallMs: () => Math.floor(EPOCH_MS + this.#nowMs),
      setTimer: (delayMs, fire): Timer => {
        const { armed } = this.#arm(Math.ceil(delayMs), undefined, fire);
        return {
          cancel: () => {
            armed.isCancelled = true;
          },
        };
      },
      sleep: (ms, signal) => sleep(time, ms, signal),
    };
    return time;
  }

  #arm(ms: number, everyMs: number | undefined, fire: () => void): Handle {
    // As in Node: whole milliseconds, at least one.
    const dueMs = this.#nowMs + Math.max(1, Math.trunc(ms));
    const armed: VirtualTimer = { dueMs, order: this.#nextOrder(), everyMs, fire, isCancelled: false };
    this.#push(armed);
    return new Handle(armed);
  }

  #nextOrder(): number {
    this.#order += 1;
    return this.#order;
  }

  /** Fires all timers of the next instant; false if no timer is armed. */
  #advance(): boolean {
    while (this.#heap[0]?.isCancelled) this.#pop();
    const dueMs = this.#heap[0]?.dueMs;
    if (dueMs === undefined) return false;
    this.#nowMs = dueMs;
    while (this.#heap[0]?.dueMs === dueMs) {
      const armed = this.#pop();
      if (armed.isCancelled) continue;
      armed.fire();
      if (armed.everyMs === undefined) continue;
      armed.dueMs += armed.everyMs;
      this.#push(armed);
    }
    return true;
  }

  #push(armed: VirtualTimer): void {
    const heap = this.#heap;
    let at = heap.push(armed) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(armed, heap[parent] as VirtualTimer)) break;
      heap[at] = heap[parent] as VirtualTimer;
      at = parent;
    }
    heap[at] = armed;
  }

  #pop(): VirtualTimer {
    const heap = this.#heap;
    const first = heap[0] as VirtualTimer;
    const last = heap.pop() as VirtualTimer;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as VirtualTimer, heap[child] as VirtualTimer)) child += 1;
      if (!isBefore(heap[child] as VirtualTimer, last)) break;
      heap[at] = heap[child] as VirtualTimer;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: VirtualTimer, b: VirtualTimer): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}
