/**
 * Replaces a method that other libraries may replace too, such as a tracer. Their functions stay, whether they were set
 * before or after ours.
 */
export class MethodHook<Method> {
  readonly #read: () => Method;
  readonly #write: (method: Method) => void;
  readonly #wrap: (next: Method) => Method;
  /** Our function that was set last, and the one that it calls. */
  #own: { readonly method: Method; readonly next: Method } | undefined;

  /** `wrap` returns our function, which calls `next`. */
  constructor(read: () => Method, write: (method: Method) => void, wrap: (next: Method) => Method) {
    this.#read = read;
    this.#write = write;
    this.#wrap = wrap;
  }

  /**
   * Makes our function the current one. If another library has replaced it, a new wrapper is set that calls the
   * library's function. That function may call our earlier wrapper, so one request can pass two of our wrappers.
   */
  install(): void {
    const next = this.#read();
    if (this.#own !== undefined && next === this.#own.method) return;
    this.#own = { method: this.#wrap(next), next };
    this.#write(this.#own.method);
  }

  /** Restores the function before ours. If another library has wrapped ours, its wrapper stays and calls ours. */
  remove(): void {
    if (this.#own === undefined || this.#read() !== this.#own.method) return;
    this.#write(this.#own.next);
    this.#own = undefined;
  }
}
