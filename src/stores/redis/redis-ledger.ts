/**
 * What this process has out of each budget, as far as it knows. When a call is lost, nobody knows whether its units
 * were given, or its settlements done. Then the next call says what the process has, and the server counts the rest as
 * written: late, never early. The same puts back what a server forgot that was started anew.
 */
export class RedisLedger {
  readonly #leased = new Map<string, number>();
  readonly #uncertain = new Map<string, number>();
  /** Grows with each doubt: a call from before it that comes late changes nothing. */
  epoch = 0;

  granted(keys: Iterable<string>, units: number): void {
    for (const key of keys) this.#leased.set(key, this.#leasedOf(key) + units);
  }

  settled(key: string, units: number): void {
    const left = this.#leasedOf(key) - units;
    if (left > 0) this.#leased.set(key, left);
    else this.#leased.delete(key);
  }

  /** Nothing is known any more of these, nor of what the process has out. `nowUs` is when. */
  markUncertain(keys: Iterable<string>, nowUs: number): void {
    this.epoch += 1;
    for (const key of keys) this.#uncertain.set(key, nowUs);
    for (const key of this.#leased.keys()) this.#uncertain.set(key, nowUs);
  }

  get isUncertain(): boolean {
    return this.#uncertain.size > 0;
  }

  /** The server has heard what the process has out of this. */
  confirm(key: string): void {
    this.#uncertain.delete(key);
  }

  /** Forgets what was in doubt before: by then the server has counted it as written, since the lease was over. */
  forget(beforeUs: number): void {
    for (const [key, sinceUs] of this.#uncertain)
      if (sinceUs < beforeUs && !this.#leased.has(key)) this.#uncertain.delete(key);
  }

  /** What the server has to be told: so many are out, less those; or -1 when it knows. */
  claimed(key: string, lessUnits: number): number {
    return this.#uncertain.has(key) ? Math.max(0, this.#leasedOf(key) - lessUnits) : -1;
  }

  #leasedOf(key: string): number {
    return this.#leased.get(key) ?? 0;
  }
}
