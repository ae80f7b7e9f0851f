/** Counts the connections that the wire opens, and knows which request is the first one of its connection. */
export class ConnectionCount {
  readonly #isReported: boolean;
  #total = 0;
  #isNew = false;

  /** @param isReported false with a proxy: then undici does not report the connections that it opens */
  constructor(isReported: boolean) {
    this.#isReported = isReported;
  }

  get total(): number {
    return this.#total;
  }

  /** Whether a connection may have been opened since the count was `total`. */
  hasGrownFrom(total: number): boolean {
    return !this.#isReported || this.#total !== total;
  }

  /** undici reports a connection, and then writes its first request in the same turn of the event loop. */
  readonly onOpened = (): void => {
    this.#total += 1;
    this.#isNew = true;
    queueMicrotask(() => {
      this.#isNew = false;
    });
  };

  /** True once for each connection, and only while its first request is written. */
  takeNew(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }
}
