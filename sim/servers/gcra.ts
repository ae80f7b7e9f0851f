import type { Enforcer } from "./enforcer.ts";

/** The generic cell rate algorithm with one theoretical arrival time. In microseconds x limit, to avoid rounding. */
export class Gcra implements Enforcer {
  readonly #limit: number;
  readonly #windowUs: number;
  /** Theoretical arrival time x limit. */
  #arrival = 0;

  constructor(limit: number, windowUs: number) {
    this.#limit = limit;
    this.#windowUs = windowUs;
  }

  has(units: number, nowUs: number): boolean {
    return this.#arrivalAfter(units, nowUs) <= (nowUs + this.#windowUs) * this.#limit;
  }

  count(units: number, nowUs: number): void {
    this.#arrival = this.#arrivalAfter(units, nowUs);
  }

  remaining(nowUs: number): number {
    return Math.floor(((nowUs + this.#windowUs) * this.#limit - this.#arrivalAfter(0, nowUs)) / this.#windowUs);
  }

  #arrivalAfter(units: number, nowUs: number): number {
    return Math.max(this.#arrival, nowUs * this.#limit) + units * this.#windowUs;
  }
}
