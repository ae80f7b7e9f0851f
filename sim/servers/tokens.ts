import type { Enforcer } from "./enforcer.ts";

/** Tokens drip into a bucket, and each unit takes one out. Counted in microseconds of dripping, so that nothing rounds. */
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
    this.#drip(nowUs);
    return this.#filledUs >= units * this.#windowUs;
  }

  count(units: number, nowUs: number): void {
    this.#drip(nowUs);
    this.#filledUs -= units * this.#windowUs;
  }

  remaining(nowUs: number): number {
    this.#drip(nowUs);
    return Math.floor(this.#filledUs / this.#windowUs);
  }

  #drip(nowUs: number): void {
    this.#filledUs = Math.min(this.#limit * this.#windowUs, this.#filledUs + (nowUs - this.#lastUs) * this.#limit);
    this.#lastUs = nowUs;
  }
}
