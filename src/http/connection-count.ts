/** Counts the connections that the wire opens, and knows which request is the first one of its connection. */
export class ConnectionCount {
  readonly #isKnown: boolean;
  #total = 0;
  #isNew = false;

  /** @param isKnown false for connections behind a proxy, which nothing reports */
  constructor(isKnown: boolean) {
    this.#isKnown = isKnown;
  }

  get total(): number {
    return this.#total;
  }

  /** Whether a connection may have been opened since there were `total`. */
  hasGrownFrom(total: number): boolean {
    return !this.#isKnown || this.#total !== total;
  }

  /** undici writes the first request of a connection in the same turn, after it has reported the connection. */
  readonly onOpened = (): void => {
    this.#total += 1;
    this.#isNew = true;
    queueMicrotask(() => {
      this.#isNew = false;
    });
  };

  /** True once after each connection, and only while its first request is written. */
  takeNew(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }
}
