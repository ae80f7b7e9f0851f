/** Actions with a common key run one after the other, in the order of the calls. All others run at the same time. */
export class ExclusiveActions {
  /** The end of the last action with a key. */
  readonly #ends = new Map<string, Promise<void>>();

  /** Keys with an action that has not ended. */
  get size(): number {
    return this.#ends.size;
  }

  run<Value>(keys: readonly string[], action: () => Promise<Value>): Promise<Value> {
    const result = Promise.all(keys.map(key => this.#ends.get(key))).then(action);
    const end: Promise<void> = result.then(
      () => this.#forget(keys, end),
      () => this.#forget(keys, end),
    );
    for (const key of keys) this.#ends.set(key, end);
    return result;
  }

  #forget(keys: readonly string[], end: Promise<void>): void {
    for (const key of keys) if (this.#ends.get(key) === end) this.#ends.delete(key);
  }
}
