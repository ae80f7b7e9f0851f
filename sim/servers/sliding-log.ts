import type { Enforcer } from "./enforcer.ts";

/** At most `limit` units in any window: the strictest algorithm. */
export class SlidingLog implements Enforcer {
  readonly #limit: number;
  readonly #windowUs: number;
  #stamps: number[] = [];

  constructor(limit: number, windowUs: number) {
    this.#limit = limit;
    this.#windowUs = windowUs;
  }

  has(units: number, nowUs: number): boolean {
    return this.remaining(nowUs) >= units;
  }

  count(units: number, nowUs: number): void {
    for (let unit = 0; unit < units; unit += 1) this.#stamps.push(nowUs);
  }

  remaining(nowUs: number): number {
    this.#stamps = this.#stamps.filter(stampUs => stampUs > nowUs - this.#windowUs);
    return this.#limit - this.#stamps.length;
  }
}
