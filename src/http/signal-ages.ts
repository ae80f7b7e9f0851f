/**
 * When the hub first saw each AbortSignal. A signal does not tell when its timeout began; one that several calls share
 * is older than the last of them.
 */
export class SignalAges {
  readonly #sinceUs = new WeakMap<object, number>();

  /** `nowUs` for a call without a signal, and for the first call with this one. */
  sinceUs(signal: unknown, nowUs: number): number {
    if (typeof signal !== "object" || signal === null) return nowUs;
    const sinceUs = this.#sinceUs.get(signal);
    if (sinceUs !== undefined) return sinceUs;
    this.#sinceUs.set(signal, nowUs);
    return nowUs;
  }
}
