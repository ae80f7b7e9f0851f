/** The counting methods of servers. Times are milliseconds of the server's monotonic clock. */
import type { RaceWindow } from "./limits.ts";

/** The counting method of a scenario. */
export type Counting = "any-window" | "two-buckets" | "fixed-window";

export interface Counter {
  readonly window: RaceWindow;
  /** Milliseconds until one more request is accepted; 0 for now. */
  waitMs(nowMs: number, limit: number): number;
  /** Records an accepted request. */
  add(nowMs: number): void;
}

export function counterOf(counting: Counting, window: RaceWindow): Counter {
  if (counting === "any-window") return new SlidingLogCounter(window);
  return counting === "two-buckets" ? new TwoBucketsCounter(window) : new FixedWindowCounter(window);
}

/** Exact: at most the limit in any window, wherever it begins. */
class SlidingLogCounter implements Counter {
  readonly window: RaceWindow;
  #inMs: number[] = [];
  #oldest = 0;

  constructor(window: RaceWindow) {
    this.window = window;
  }

  waitMs(nowMs: number, limit: number): number {
    const { windowMs } = this.window;
    while ((this.#inMs[this.#oldest] ?? nowMs) <= nowMs - windowMs) this.#oldest += 1;
    const blocking = this.#inMs[Math.max(this.#oldest, this.#inMs.length - limit)];
    const isFull = this.#inMs.length - this.#oldest >= limit;
    return isFull && blocking !== undefined ? blocking + windowMs - nowMs : 0;
  }

  add(nowMs: number): void {
    this.#inMs.push(nowMs);
    if (this.#oldest < 10_000) return;
    this.#inMs = this.#inMs.slice(this.#oldest);
    this.#oldest = 0;
  }
}

/**
 * Two counters. The previous one is weighted by the share of it that the sliding window covers, as in CDNs and Redis.
 */
class TwoBucketsCounter implements Counter {
  readonly window: RaceWindow;
  #bucket = 0;
  #count = 0;
  #before = 0;

  constructor(window: RaceWindow) {
    this.window = window;
  }

  waitMs(nowMs: number, limit: number): number {
    this.#turn(nowMs);
    const { windowMs } = this.window;
    const leftMs = (this.#bucket + 1) * windowMs - nowMs;
    const counted = this.#count + this.#before * (leftMs / windowMs);
    if (counted + 1 <= limit) return 0;
    // Within this bucket the weight of the previous one falls. If that is not enough, the next bucket may be.
    const room = limit - 1 - this.#count;
    return room >= 0 && this.#before > 0 ? leftMs - (room / this.#before) * windowMs : leftMs;
  }

  add(nowMs: number): void {
    this.#turn(nowMs);
    this.#count += 1;
  }

  #turn(nowMs: number): void {
    const bucket = Math.floor(nowMs / this.window.windowMs);
    if (bucket === this.#bucket) return;
    this.#before = bucket === this.#bucket + 1 ? this.#count : 0;
    this.#count = 0;
    this.#bucket = bucket;
  }
}

/** A counter that is reset at each window of the clock. */
class FixedWindowCounter implements Counter {
  readonly window: RaceWindow;
  #bucket = 0;
  #count = 0;

  constructor(window: RaceWindow) {
    this.window = window;
  }

  waitMs(nowMs: number, limit: number): number {
    this.#turn(nowMs);
    return this.#count < limit ? 0 : (this.#bucket + 1) * this.window.windowMs - nowMs;
  }

  add(nowMs: number): void {
    this.#turn(nowMs);
    this.#count += 1;
  }

  #turn(nowMs: number): void {
    const bucket = Math.floor(nowMs / this.window.windowMs);
    if (bucket !== this.#bucket) this.#count = 0;
    this.#bucket = bucket;
  }
}
