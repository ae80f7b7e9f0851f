/** When units went, in the order in which they did. */
export class StampLog {
  readonly #stamps: number[] = [];

  /** Keeps the order even when somebody comes with an earlier stamp. */
  add(atUs: number, units: number): void {
    for (let unit = 0; unit < units; unit += 1) {
      let index = this.#stamps.length;
      while (index > 0 && (this.#stamps[index - 1] as number) > atUs) index -= 1;
      this.#stamps.splice(index, 0, atUs);
    }
  }

  /** How many there are within an interval that ends now. */
  within(windowUs: number, nowUs: number): number {
    let count = 0;
    for (let index = this.#stamps.length - 1; index >= 0; index -= 1) {
      if ((this.#stamps[index] as number) <= nowUs - windowUs) break;
      count += 1;
    }
    return count;
  }
}
