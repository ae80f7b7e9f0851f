/** Old entries that are checked for each new one: two, so that entries can be deleted faster than they are added. */
const CHECKS_PER_NEW_ENTRY = 2;

/**
 * A map that deletes entries that are no longer needed (law L11).
 * A crawler contacts millions of hosts once. Each new entry checks two old ones, and deletes those that
 * `isEvictable` accepts. This needs no timer and no pause, and above `minSize` few unused entries remain.
 */
export class EvictingMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #isEvictable: (value: Value, key: string) => boolean;
  readonly #minSize: number;
  #cursor: Iterator<[string, Value]> | undefined;

  /** Up to `minSize` entries nothing is deleted: rebuilding an entry that is used again costs more than it saves. */
  constructor(isEvictable: (value: Value, key: string) => boolean, minSize = 0) {
    this.#isEvictable = isEvictable;
    this.#minSize = minSize;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  add(key: string, value: Value): void {
    if (this.#entries.size >= this.#minSize) {
      for (let checks = 0; checks < CHECKS_PER_NEW_ENTRY; checks += 1) this.#checkNext();
    }
    this.#entries.set(key, value);
  }

  /** Adds an entry that `add` of another one has just deleted. Deletes none. */
  restore(key: string, value: Value): void {
    this.#entries.set(key, value);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  values(): IterableIterator<Value> {
    return this.#entries.values();
  }

  entries(): IterableIterator<[string, Value]> {
    return this.#entries.entries();
  }

  #checkNext(): void {
    this.#cursor ??= this.#entries.entries();
    const { value, done } = this.#cursor.next();
    if (done) this.#cursor = undefined;
    else if (this.#isEvictable(value[1], value[0])) this.#entries.delete(value[0]);
  }
}
