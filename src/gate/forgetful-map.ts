/** How many old entries are looked at for each new one: enough to forget faster than new ones can come. */
const LOOKS_PER_NEW_ENTRY = 2;

/**
 * A map that forgets what need not be remembered.
 * A crawler meets millions of hosts once. Each new entry pays for a look at two old ones, and those whose state equals
 * a fresh one are dropped (law L11): no timer, no pause, and never more than twice as many entries as are in use.
 */
export class ForgetfulMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #isForgettable: (value: Value) => boolean;
  #hand: Iterator<[string, Value]> | undefined;

  constructor(isForgettable: (value: Value) => boolean) {
    this.#isForgettable = isForgettable;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  add(key: string, value: Value): void {
    for (let looks = 0; looks < LOOKS_PER_NEW_ENTRY; looks += 1) this.#look();
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
