/** A binary heap: the first item by `isBefore` is found in O(1), added or removed in O(log n). */
export class Heap<Item> {
  readonly #isBefore: (a: Item, b: Item) => boolean;
  readonly #items: Item[] = [];

  constructor(isBefore: (a: Item, b: Item) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): Item | undefined {
    return this.#items[0];
  }

  /** All items, in no order. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /** Removes and returns the items that the predicate selects, in no order. Reads all of them. */
  take(isTaken: (item: Item) => boolean): readonly Item[] {
    const [taken, kept] = [this.#items.filter(isTaken), this.#items.filter(item => !isTaken(item))];
    this.#items.length = 0;
    for (const item of kept) this.push(item);
    return taken;
  }

  push(item: Item): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = items[up];
      if (parent === undefined || !this.#isBefore(item, parent)) break;
      items[at] = parent;
      at = up;
    }
    items[at] = item;
  }

  /** Removes and returns the first item. */
  pop(): Item | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      const left = items[down];
      const right = items[down + 1];
      if (left === undefined) break;
      const child = right !== undefined && this.#isBefore(right, left) ? right : left;
      if (child === right) down += 1;
      if (!this.#isBefore(child, last)) break;
      items[at] = child;
      at = down;
    }
    items[at] = last;
    return first;
  }
}
