import type { Enforcer } from "./enforcer.ts";

/** Two fixed windows, the older weighted by its overlap with a sliding window. The estimate may be too strict. */
export class TwoBuckets implements Enforcer {
  readonly #limit: number;
  readonly #windowUs: number;
  #window = 0;
  #previousCount = 0;
  #currentCount = 0;

  constructor(limit: number, windowUs: number) {
    this.#limit = limit;
    this.#windowUs = windowUs;
  }

  has(units: number, nowUs: number): boolean {
    return this.#estimate(nowUs) + units <= this.#limit;
  }

  count(units: number, nowUs: number): void {
    this.#startWindow(nowUs);
    this.#currentCount += units;
  }

  remaining(nowUs: number): number {
    return Math.max(0, Math.floor(this.#limit - this.#estimate(nowUs)));
  }

  #estimate(nowUs: number): number {
    this.#startWindow(nowUs);
    const passed = (nowUs % this.#windowUs) / this.#windowUs;
    return this.#previousCount * (1 - passed) + this.#currentCount;
  }

  #startWindow(nowUs: number): void {
    const window = Math.floor(nowUs / this.#windowUs);
    if (window === this.#window) return;
    this.#previousCount = window === this.#window + 1 ? this.#currentCount : 0;
    this.#currentCount = 0;
    this.#window = window;
  }
}
