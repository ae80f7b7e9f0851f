import type { Clock } from "./clock.ts";

/** The epoch of the world: its wall clocks show this when it begins. */
export const SIM_EPOCH_MS = 1_800_000_000_000;

/** One machine: its monotonic clock stands still while it is suspended, as Linux's does. */
export class Machine {
  readonly #clock: Clock;
  #suspendedUs = 0;
  #suspendedUntilUs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get suspendedUntilUs(): number {
    return this.#suspendedUntilUs;
  }

  suspend(us: number): void {
    this.#suspendedUs += us;
    this.#suspendedUntilUs = this.#clock.nowUs + us;
  }

  machineUs(): number {
    return Math.floor(this.#clock.nowUs - this.#suspendedUs);
  }
}
