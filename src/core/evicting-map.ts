/** How many old entries are looked at for each new one: enough to forget faster than new ones can come. */
const CHECKS_PER_NEW_ENTRY = 2;

/**
 * A map that forgets what need not be remembered.
 * A crawler meets millions of hosts once. Each new entry pays for a look at two old ones, and those whose state equals
 * a fresh one, or need not be remembered for another reason, are dropped: no timer, no pause, and beyond `least` few
 * more entries than are in use.
 */
export class EvictingMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #isForgettable: (value: Value) => boolean;
  readonly #minSize: number;
  #cursor: Iterator<[string, Value]> | undefined;

  /** `least`: so many are kept anyway. Forgetting what is about to come again costs more than it saves. */
  constructor(isForgettable: (value: Value) => boolean, minSize = 0) {
    this.#isForgettable = isForgettable;
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

  delete(key: string): void {
    this.#entries.delete(key);
  }

  values(): IterableIterator<Value> {
    return this.#entries.values();
  }

  #checkNext(): void {
    this.#cursor ??= this.#entries.entries();
    const { value, done } = this.#cursor.next();
    if (done) this.#cursor = undefined;
    else if (this.#isForgettable(value[1])) this.#entries.delete(value[0]);
  }
}
