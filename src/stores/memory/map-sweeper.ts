const SWEPT_AT_ONCE = 2;

/** Deletes the expired entries of a map. Each call checks two entries, so that no call scans the whole map. */
export class MapSweeper<Value> {
  readonly #map: Map<string, Value>;
  readonly #isExpired: (value: Value, nowUs: number) => boolean;
  #entries: IterableIterator<[string, Value]>;

  constructor(map: Map<string, Value>, isExpired: (value: Value, nowUs: number) => boolean) {
    this.#map = map;
    this.#isExpired = isExpired;
    this.#entries = map.entries();
  }

  sweep(nowUs: number): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept += 1) {
      const { done, value } = this.#entries.next();
      if (done) {
        this.#entries = this.#map.entries();
        return;
      }
      const [key, entry] = value;
      if (this.#isExpired(entry, nowUs)) this.#map.delete(key);
    }
  }
}
