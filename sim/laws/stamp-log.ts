/** The instants of units, in ascending order. */
export class StampLog {
  readonly #stamps: number[] = [];

  /** Stamps may arrive out of order. */
  add(atUs: number, units: number): void {
    for (let unit = 0; unit < units; unit += 1) {
      let index = this.#stamps.length;
      while (index > 0 && (this.#stamps[index - 1] as number) > atUs) index -= 1;
      this.#stamps.splice(index, 0, atUs);
    }
  }

  /** Units within the window that ends at `nowUs`. */
  within(windowUs: number, nowUs: number): number {
    let count = 0;
    for (let index = this.#stamps.length - 1; index >= 0; index -= 1) {
      if ((this.#stamps[index] as number) <= nowUs - windowUs) break;
      count += 1;
    }
    return count;
  }
}
