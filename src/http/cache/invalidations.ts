/**
 * Bounds the memory. If there are more, the oldest is forgotten, and every response requested before it counts as
 * invalidated.
 */
const URLS_MAX = 10_000;

/**
 * The URLs that were written to, in order. A response that was requested before a write to its URL may hold the content
 * before it, so it must not be stored after the write, nor be shared with a request that began after it.
 */
export class Invalidations {
  readonly #maxUrls: number;
  /** The number of the last invalidation of each URL, oldest first. */
  readonly #numbers = new Map<string, number>();
  /** The number of the last invalidation that was forgotten. */
  #forgotten = 0;
  #count = 0;

  constructor(maxUrls = URLS_MAX) {
    this.#maxUrls = maxUrls;
  }

  /** The invalidations so far. */
  get count(): number {
    return this.#count;
  }

  add(url: string): void {
    this.#count += 1;
    this.#numbers.delete(url);
    this.#numbers.set(url, this.#count);
    if (this.#numbers.size <= this.#maxUrls) return;
    for (const [oldest, number] of this.#numbers) {
      this.#numbers.delete(oldest);
      this.#forgotten = number;
      return;
    }
  }

  /** Whether the URL was, or may have been, invalidated since there were `count` invalidations. */
  isSince(url: string, count: number): boolean {
    return count < this.#forgotten || (this.#numbers.get(url) ?? 0) > count;
  }
}
