/** Counts the requests in the window that ends now, and keeps the largest count there has been. */
export class WindowCounter {
  readonly #windowUs: number;
  /** Sorted; entries before `#from` have left the window. */
  #stampsUs: number[] = [];
  #from = 0;
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
    while ((this.#stampsUs[this.#from] ?? nowUs) <= nowUs - this.#windowUs) this.#from += 1;
    if (this.#from > 1000 && this.#from > this.#stampsUs.length / 2) {
      this.#stampsUs = this.#stampsUs.slice(this.#from);
      this.#from = 0;
    }
    return this.#stampsUs.length - this.#from;
  }

  /** Microseconds until the oldest request leaves the window; 0 if the window is empty. */
  freeInUs(nowUs: number): number {
    const oldestUs = this.count(nowUs) === 0 ? undefined : this.#stampsUs[this.#from];
    return oldestUs === undefined ? 0 : oldestUs + this.#windowUs - nowUs;
  }
}
