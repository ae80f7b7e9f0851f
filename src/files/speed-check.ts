import type { Time, Timer } from "../time/time.ts";
import type { BodyReader } from "./body-reader.ts";

export interface MinSpeed {
  /** The fewest bytes that must arrive in a period. */
  readonly bytes: number;
  readonly periodMs: number;
  readonly time: Time;
}

/** The `code` of the error that interrupts a slow body. */
export const TOO_SLOW = "ERR_BODY_TOO_SLOW";

/**
 * Drops a body that delivers too little in a period. Each period starts with the end of the one before. Time in which the
 * caller writes does not count: a body that nothing reads stops, however fast its server is.
 */
export class SpeedCheck {
  readonly #minSpeed: MinSpeed;
  readonly #body: Pick<BodyReader, "drop">;
  readonly #bytesSoFar: () => number;
  #bytesBefore: number;
  #periodEndsUs: number;
  #timer: Timer;
  #error: Error | undefined;

  constructor(minSpeed: MinSpeed, body: Pick<BodyReader, "drop">, bytesSoFar: () => number) {
    this.#minSpeed = minSpeed;
    this.#body = body;
    this.#bytesSoFar = bytesSoFar;
    this.#bytesBefore = bytesSoFar();
    this.#periodEndsUs = minSpeed.time.monotonicUs() + minSpeed.periodMs * 1000;
    this.#timer = this.#arm();
  }

  /** Why the body was dropped; undefined if it was fast enough. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** The period is longer by the time that the action takes. */
  async exclude(action: () => Promise<void>): Promise<void> {
    const { time } = this.#minSpeed;
    this.#timer.cancel();
    const startedUs = time.monotonicUs();
    await action();
    this.#periodEndsUs += time.monotonicUs() - startedUs;
    this.#timer = this.#arm();
  }

  stop(): void {
    this.#timer.cancel();
  }

  #arm(): Timer {
    const { time } = this.#minSpeed;
    return time.setTimer((this.#periodEndsUs - time.monotonicUs()) / 1000, () => this.#endPeriod());
  }

  #endPeriod(): void {
    const { bytes, periodMs, time } = this.#minSpeed;
    const bytesSoFar = this.#bytesSoFar();
    const received = bytesSoFar - this.#bytesBefore;
    if (received >= bytes) {
      this.#bytesBefore = bytesSoFar;
      this.#periodEndsUs = time.monotonicUs() + periodMs * 1000;
      this.#timer = this.#arm();
    } else {
      const message = `received ${received} bytes in ${periodMs / 1000} s, expected at least ${bytes}`;
      this.#error = Object.assign(new Error(message), { code: TOO_SLOW });
      this.#body.drop();
    }
  }
}
