import { setImmediate } from "node:timers/promises";
import { sleep } from "../time/sleep.ts";
import type { Time, Timer } from "../time/time.ts";

/** Options of `FakeTime`. */
export interface FakeTimeOptions {
  /** Epoch milliseconds of the wall clock at the start. @default 1_700_000_000_000 */
  readonly wallMs?: number;
  /**
   * How early the next timer fires, in microseconds from 0 to 1000; Node's timers can be 1 ms early.
   * @default () => 0
   */
  readonly earlyUs?: () => number;
}

interface FakeTimer {
  readonly dueUs: number;
  readonly fire: () => void;
}

/**
 * A clock and timers for tests. Time moves only when the test calls `advance`, `tick` or `stall`. Timers fire in the
 * order in which they are due; of two that are due at once, the one set first fires first.
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

  /** Microseconds since this object was made. Never decreases. */
  monotonicUs(): number {
    return this.#nowUs;
  }

  /** The same as `monotonicUs`: all users of one FakeTime count as processes of one machine. */
  machineUs(): number {
    return this.#nowUs;
  }

  /** Epoch milliseconds of the wall clock, which `stepWall` can move. */
  wallMs(): number {
    return this.#wallOffsetMs + Math.floor(this.#nowUs / 1000);
  }

  /** Calls `fire` after `delayMs`, rounded up to whole milliseconds, unless the timer is cancelled. */
  setTimer(delayMs: number, fire: () => void): Timer {
    const earlyUs = Math.min(1000, Math.max(0, this.#earlyUs()));
    // Whole milliseconds, as in Node. At least 100 µs, because a timer that sets itself again would otherwise never end.
    const delayUs = Math.max(1, Math.ceil(delayMs)) * 1000;
    const dueUs = this.#nowUs + Math.max(100, delayUs - earlyUs);
    const timer: FakeTimer = { dueUs, fire };
    this.#armed.add(timer);
    return { cancel: () => this.#armed.delete(timer) };
  }

  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this, ms, signal);
  }

  /** How many timers are set. More than 0 at the end of a test shows a leak. */
  get armedTimers(): number {
    return this.#armed.size;
  }

  /** Milliseconds until the next timer is due; undefined if no timer is set. */
  get nextTimerMs(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.dueUs - this.#nowUs) / 1000;
  }

  /** Moves time by `ms`. Each timer fires at its time, and the promises that it resolves run before the next timer. */
  async advance(ms: number): Promise<void> {
    const untilUs = this.#nowUs + Math.round(ms * 1000);
    await setImmediate();
    while (this.#fireNext(untilUs)) await setImmediate();
    this.#nowUs = untilUs;
  }

  /** Like `advance`, but synchronous: no promise runs between the timers. */
  tick(ms: number): void {
    const untilUs = this.#nowUs + Math.round(ms * 1000);
    while (this.#fireNext(untilUs));
    this.#nowUs = untilUs;
  }

  /**
   * Simulates an event loop that is blocked for `ms`: the timers that became due in that time fire late, at its end.
   */
  async stall(ms: number): Promise<void> {
    this.#nowUs += Math.round(ms * 1000);
    await this.advance(0);
  }

  /** Moves the wall clock by `ms`, which may be negative. `monotonicUs` and timers do not change. */
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
