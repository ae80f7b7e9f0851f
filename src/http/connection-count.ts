/** Counts the connections that the wire opens, and tells which request is the first one of its connection. */
export class ConnectionCount {
  total = 0;
  #isNew = false;

  /** undici writes the first request of a connection in the same turn, after it has reported the connection. */
  opened(): void {
    this.total += 1;
    this.#isNew = true;
    queueMicrotask(() => {
      this.#isNew = false;
    });
  }

  /** True once after each connection, and only while its first request is written. */
  takeNew(): boolean {
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }
}
