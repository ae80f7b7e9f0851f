/** Counts the connections that the wire opens, and knows which request is the first one of its connection. */
export class ConnectionCount {
  readonly #isDirect: boolean;
  #total = 0;
  #isNew = false;

  /** @param isDirect false with a proxy, which may open a connection to the server for any request */
  constructor(isDirect: boolean) {
    this.#isDirect = isDirect;
  }

  get total(): number {
    return this.#total;
  }

  /**
   * Whether a connection may have been opened since the count was `total`. Always true if the wire has never reported a
   * connection: a dispatcher of the caller may open them without a `connect` event.
   */
  hasGrownFrom(total: number): boolean {
    return !this.#isDirect || this.#total === 0 || this.#total !== total;
  }

  /** undici reports a connection, and then writes its first request in the same turn of the event loop. */
  readonly onOpened = (): void => {
    this.#total += 1;
    this.#isNew = true;
    queueMicrotask(() => {
      this.#isNew = false;
    });
  };

  /**
   * True once for each connection, and only while its first request is written. Never true for a dispatcher that does not
   * report its connections.
   */
  takeNew(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }
}
