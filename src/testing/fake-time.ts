import { setImmediate } from "node:timers/promises";
import { sleep } from "../time/sleep.ts";
import type { Time, Timer } from "../time/time.ts";

export interface FakeTimeOptions {
  /** Epoch milliseconds of the wall clock at the start. @default 1_700_000_000_000 */
  readonly wallMs?: number;
  /** How early the next timer fires, in microseconds from 0 to 1000, as Node's may. @default never early */
  readonly earlyUs?: () => number;
}

interface FakeTimer {
  readonly dueUs: number;
  readonly fire: () => void;
}

/**
 * Time that moves only when a test says so.
 * Timers fire in the order in which they are due, ties in the order in which they were armed.
 */
export class FakeTime implements Time {
  #nowUs = 0;
  #wallOffsetMs: number;
  readonly #earlyUs: () => number;
  readonly #armed = new Set<FakeTimer>();

  constructor({ wallMs = 1_700_000_000_000, earlyUs = () => 0 }: FakeTimeOptions = {}) {
    this.#wallOffsetMs = wallMs;
    this.#earlyUs = earlyUs;
  }

  monotonicUs(): number {
    return this.#nowUs;
  }

  /** The same clock: whoever shares one of these is on one machine. */
  machineUs(): number {
    return this.#nowUs;
  }

  wallMs(): number {
    return this.#wallOffsetMs + Math.floor(this.#nowUs / 1000);
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const earlyUs = Math.min(1000, Math.max(0, this.#earlyUs()));
    // Whole milliseconds, as the system's timers have; and never for nothing, or a re-armed timer would spin in place.
    const delayUs = Math.max(1, Math.ceil(delayMs)) * 1000;
    const dueUs = this.#nowUs + Math.max(100, delayUs - earlyUs);
    const timer: FakeTimer = { dueUs, fire };
    this.#armed.add(timer);
    return { cancel: () => this.#armed.delete(timer) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this, ms, signal);
  }

  /** How many timers are armed; a test that leaves some behind has found a leak. */
  get armedTimers(): number {
    return this.#armed.size;
  }

  /** Milliseconds from now to the next timer; undefined when none is armed. */
  get nextTimerMs(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.dueUs - this.#nowUs) / 1000;
  }

  /** Moves both clocks by `ms`, firing each timer at its moment and letting what it woke run before the next. */
  async advance(ms: number): Promise<void> {
    const untilUs = this.#nowUs + Math.round(ms * 1000);
    await setImmediate();
    while (this.#fireNext(untilUs)) await setImmediate();
    this.#nowUs = untilUs;
  }

  /** `advance` without letting promises run in between: for code under test that is synchronous. */
  tick(ms: number): void {
    const untilUs = this.#nowUs + Math.round(ms * 1000);
    while (this.#fireNext(untilUs));
    this.#nowUs = untilUs;
  }

  /** The event loop stands still for `ms`: the clocks go on, and timers that fell due meanwhile fire late, at the end. */
  async stall(ms: number): Promise<void> {
    this.#nowUs += Math.round(ms * 1000);
    await this.advance(0);
  }

  /** The wall clock jumps, forwards or backwards; elapsed time does not notice. */
  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  #fireNext(untilUs: number): boolean {
    const next = this.#next();
    if (next === undefined || next.dueUs > untilUs) return false;
    this.#armed.delete(next);
    this.#nowUs = Math.max(this.#nowUs, next.dueUs);
    next.fire();
    return true;
  }

  #next(): FakeTimer | undefined {
    let first: FakeTimer | undefined;
    for (const timer of this.#armed) if (first === undefined || timer.dueUs < first.dueUs) first = timer;
    return first;
  }
}
