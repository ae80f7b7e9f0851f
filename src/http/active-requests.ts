/** Something that lasts and can be ended early. It has its neighbours' places in it: see `UnderWay`. */
export interface Ongoing {
  abort(reason: unknown): void;
  before: Ongoing | undefined;
  behind: Ongoing | undefined;
}

/**
 * Everything that must come to an end before a hub is closed: a list that goes through its members, because a set would
 * cost each call as much as its way through the breakers.
 */
export class UnderWay {
  #first: Ongoing | undefined;
  #size = 0;
  #whenEmpty: (() => void)[] = [];

  get size(): number {
    return this.#size;
  }

  /** Once for each. */
  add(one: Ongoing): void {
    one.behind = this.#first;
    if (this.#first !== undefined) this.#first.before = one;
    this.#first = one;
    this.#size += 1;
  }

  /** Only what was added, and once. */
  delete(one: Ongoing): void {
    const { before, behind } = one;
    if (before === undefined) this.#first = behind;
    else before.behind = behind;
    if (behind !== undefined) behind.before = before;
    one.before = undefined;
    one.behind = undefined;
    this.#size -= 1;
    if (this.#size > 0) return;
    const waiting = this.#whenEmpty;
    this.#whenEmpty = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when nothing is left. */
  empty(): Promise<void> {
    if (this.#size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenEmpty.push(resolve);
    return promise;
  }

  abortAll(reason: unknown): void {
    const all: Ongoing[] = [];
    for (let one = this.#first; one !== undefined; one = one.behind) all.push(one);
    for (const one of all) one.abort(reason);
  }
}
