import type { Enforcer } from "./enforcer.ts";

/** A token bucket. Counted in microseconds x limit, to avoid rounding. */
export class Tokens implements Enforcer {
  readonly #limit: number;
  readonly #windowUs: number;
  #filledUs: number;
  #lastUs = 0;

  constructor(limit: number, windowUs: number) {
    this.#limit = limit;
    this.#windowUs = windowUs;
    this.#filledUs = limit * windowUs;
  }

  has(units: number, nowUs: number): boolean {
    this.#refill(nowUs);
    return this.#filledUs >= units * this.#windowUs;
  }

  count(units: number, nowUs: number): void {
    this.#refill(nowUs);
    this.#filledUs -= units * this.#windowUs;
  }

  remaining(nowUs: number): number {
    this.#refill(nowUs);
    return Math.floor(this.#filledUs / this.#windowUs);
  }

  #refill(nowUs: number): void {
    this.#filledUs = Math.min(this.#limit * this.#windowUs, this.#filledUs + (nowUs - this.#lastUs) * this.#limit);
    this.#lastUs = nowUs;
  }
}
