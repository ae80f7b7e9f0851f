import type { Enforcer } from "./enforcer.ts";

/** At most `limit` units in each window of the clock. */
export class FixedWindow implements Enforcer {
  readonly #limit: number;
  readonly #windowUs: number;
  #window = -1;
  #used = 0;

  constructor(limit: number, windowUs: number) {
    this.#limit = limit;
    this.#windowUs = windowUs;
  }

  has(units: number, nowUs: number): boolean {
    return this.remaining(nowUs) >= units;
  }

  count(units: number, nowUs: number): void {
    this.#startWindow(nowUs);
    this.#used += units;
  }

  remaining(nowUs: number): number {
    this.#startWindow(nowUs);
    return this.#limit - this.#used;
  }

  #startWindow(nowUs: number): void {
    const window = Math.floor(nowUs / this.#windowUs);
    if (window === this.#window) return;
    this.#window = window;
    this.#used = 0;
  }
}
