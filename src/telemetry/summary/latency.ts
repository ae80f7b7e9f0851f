import type { EventOf } from "../events.ts";

/** The mean duration of an attempt, without the waits before sending and between attempts. */
export class Latency {
  #totalMs = 0;
  #attempts = 0;

  addCall({ elapsed_ms, rate_delay_ms, attempts }: EventOf<"http_request">): void {
    this.#totalMs += elapsed_ms - rate_delay_ms;
    this.#attempts += attempts;
  }

  /** Subtracts the delay before a retry, which `elapsed_ms` of the call includes. */
  addRetryDelay(delayMs: number): void {
    this.#totalMs -= delayMs;
  }

  /** Undefined when there was no attempt. */
  get meanMs(): number | undefined {
    return this.#attempts === 0 ? undefined : Math.max(0, this.#totalMs / this.#attempts);
  }
}
