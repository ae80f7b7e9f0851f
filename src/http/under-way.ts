/** Something that lasts and can be ended early. */
export interface Ongoing {
  abort(reason: unknown): void;
}

/** Everything that must come to an end before a hub is closed. */
export class UnderWay {
  readonly #ongoing = new Set<Ongoing>();
  #whenEmpty: (() => void)[] = [];

  get size(): number {
    return this.#ongoing.size;
  }

  add(one: Ongoing): void {
    this.#ongoing.add(one);
  }

  delete(one: Ongoing): void {
    if (!this.#ongoing.delete(one) || this.#ongoing.size > 0) return;
    const waiting = this.#whenEmpty;
    this.#whenEmpty = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when nothing is left. */
  empty(): Promise<void> {
    if (this.#ongoing.size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenEmpty.push(resolve);
    return promise;
  }

  abortAll(reason: unknown): void {
    for (const one of [...this.#ongoing]) one.abort(reason);
  }
}
