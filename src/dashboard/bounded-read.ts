import type { Time } from "../time/time.ts";

/**
 * Reads of a source that may not answer for minutes, such as a server that is away. A read that is late fails, and
 * continues; the next call gets its result. So at most one read is in progress.
 */
export class BoundedRead<Value> {
  readonly #read: () => Promise<Value>;
  readonly #time: Time;
  readonly #boundMs: number;
  #pending: { readonly sinceUs: number; readonly value: Promise<Value> } | undefined;

  constructor(read: () => Promise<Value>, time: Time, boundMs: number) {
    this.#read = read;
    this.#time = time;
    this.#boundMs = boundMs;
  }

  /** Rejects with the error of the read, or if it takes longer than the bound, with an error that says for how long. */
  async value(): Promise<Value> {
    this.#pending ??= { sinceUs: this.#time.monotonicUs(), value: this.#started() };
    const { sinceUs, value } = this.#pending;
    const elapsedMs = () => (this.#time.monotonicUs() - sinceUs) / 1000;
    const lateError = () => new Error(`no answer for ${Math.round(elapsedMs() / 1000)} s`);
    if (elapsedMs() >= this.#boundMs) throw lateError();
    const late = Promise.withResolvers<never>();
    const timer = this.#time.setTimer(this.#boundMs - elapsedMs(), () => late.reject(lateError()));
    try {
      return await Promise.race([value, late.promise]);
    } finally {
      timer.cancel();
    }
  }

  async #started(): Promise<Value> {
    try {
      return await this.#read();
    } finally {
      this.#pending = undefined;
    }
  }
}
