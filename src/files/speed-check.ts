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

/** Drops a body that delivers too little in a period. Each period starts with the end of the one before. */
export class SpeedCheck {
  readonly #minSpeed: MinSpeed;
  readonly #body: Pick<BodyReader, "drop">;
  readonly #bytesSoFar: () => number;
  #timer: Timer;
  #error: Error | undefined;

  constructor(minSpeed: MinSpeed, body: Pick<BodyReader, "drop">, bytesSoFar: () => number) {
    this.#minSpeed = minSpeed;
    this.#body = body;
    this.#bytesSoFar = bytesSoFar;
    this.#timer = this.#arm();
  }

  /** Why the body was dropped; undefined if it was fast enough. */
  get error(): Error | undefined {
    return this.#error;
  }

  stop(): void {
    this.#timer.cancel();
  }

  #arm(): Timer {
    const { bytes, periodMs, time } = this.#minSpeed;
    const before = this.#bytesSoFar();
    return time.setTimer(periodMs, () => {
      const received = this.#bytesSoFar() - before;
      if (received >= bytes) this.#timer = this.#arm();
      else {
        const message = `received ${received} bytes in ${periodMs / 1000} s, expected at least ${bytes}`;
        this.#error = Object.assign(new Error(message), { code: TOO_SLOW });
        this.#body.drop();
      }
    });
  }
}
