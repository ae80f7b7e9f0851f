/** Counts the requests in the window that ends now, and keeps the largest count there has been. */
export class WindowCounter {
  readonly #windowUs: number;
  /** When requests were counted, sorted. Entries before the index `#oldest` have left the window. */
  #stampsUs: number[] = [];
  #oldest = 0;
  #most = 0;

  constructor(windowUs: number) {
    this.#windowUs = windowUs;
  }

  get most(): number {
    return this.#most;
  }

  add(nowUs: number): void {
    this.#stampsUs.push(nowUs);
    this.#most = Math.max(this.#most, this.count(nowUs));
  }

  /** The window is half-open: a request exactly one window ago has left it. */
  count(nowUs: number): number {
    while ((this.#stampsUs[this.#oldest] ?? nowUs) <= nowUs - this.#windowUs) this.#oldest += 1;
    if (this.#oldest > 1000 && this.#oldest > this.#stampsUs.length / 2) {
      this.#stampsUs = this.#stampsUs.slice(this.#oldest);
      this.#oldest = 0;
    }
    return this.#stampsUs.length - this.#oldest;
  }

  /** Microseconds until the oldest request leaves the window; 0 if the window is empty. */
  freeInUs(nowUs: number): number {
    const oldestUs = this.count(nowUs) === 0 ? undefined : this.#stampsUs[this.#oldest];
    return oldestUs === undefined ? 0 : oldestUs + this.#windowUs - nowUs;
  }
}
