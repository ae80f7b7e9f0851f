/**
 * What this process has out of each budget, as far as it knows. When a call is lost, nobody knows whether its units
 * were given, or its settlements done. Then the next call says what the process has, and the server counts the rest as
 * written: late, never early. The same puts back what a server forgot that was started anew.
 */
export class RedisLedger {
  readonly #out = new Map<string, number>();
  readonly #doubted = new Map<string, number>();
  /** Grows with each doubt: a call from before it that comes late changes nothing. */
  epoch = 0;

  given(keys: Iterable<string>, units: number): void {
    for (const key of keys) this.#out.set(key, this.#outOf(key) + units);
  }

  settled(key: string, units: number): void {
    const left = this.#outOf(key) - units;
    if (left > 0) this.#out.set(key, left);
    else this.#out.delete(key);
  }

  /** Nothing is known any more of these, nor of what the process has out. `nowUs` is when. */
  doubt(keys: Iterable<string>, nowUs: number): void {
    this.epoch += 1;
    for (const key of keys) this.#doubted.set(key, nowUs);
    for (const key of this.#out.keys()) this.#doubted.set(key, nowUs);
  }

  get isInDoubt(): boolean {
    return this.#doubted.size > 0;
  }

  /** The server has heard what the process has out of this. */
  trust(key: string): void {
    this.#doubted.delete(key);
  }

  /** Forgets what was in doubt before: by then the server has counted it as written, since the lease was over. */
  forget(beforeUs: number): void {
    for (const [key, sinceUs] of this.#doubted)
      if (sinceUs < beforeUs && !this.#out.has(key)) this.#doubted.delete(key);
  }

  /** What the server has to be told: so many are out, less those; or -1 when it knows. */
  claimed(key: string, lessUnits: number): number {
    return this.#doubted.has(key) ? Math.max(0, this.#outOf(key) - lessUnits) : -1;
  }

  #outOf(key: string): number {
    return this.#out.get(key) ?? 0;
  }
}
