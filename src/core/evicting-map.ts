/** How many old entries are looked at for each new one: enough to forget faster than new ones can come. */
const LOOKS_PER_NEW_ENTRY = 2;

/**
 * A map that forgets what need not be remembered.
 * A crawler meets millions of hosts once. Each new entry pays for a look at two old ones, and those whose state equals
 * a fresh one, or need not be remembered for another reason, are dropped: no timer, no pause, and beyond `least` few
 * more entries than are in use.
 */
export class ForgetfulMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #isForgettable: (value: Value) => boolean;
  readonly #least: number;
  #hand: Iterator<[string, Value]> | undefined;

  /** `least`: so many are kept anyway. Forgetting what is about to come again costs more than it saves. */
  constructor(isForgettable: (value: Value) => boolean, least = 0) {
    this.#isForgettable = isForgettable;
    this.#least = least;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  add(key: string, value: Value): void {
    if (this.#entries.size >= this.#least) {
      for (let looks = 0; looks < LOOKS_PER_NEW_ENTRY; looks += 1) this.#look();
    }
    this.#entries.set(key, value);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  values(): IterableIterator<Value> {
    return this.#entries.values();
  }

  #look(): void {
    this.#hand ??= this.#entries.entries();
    const { value, done } = this.#hand.next();
    if (done) this.#hand = undefined;
    else if (this.#isForgettable(value[1])) this.#entries.delete(value[0]);
  }
}
