import type { Clock } from "./clock.ts";

/** Wall time at the start of a simulation, in epoch milliseconds. */
export const SIM_EPOCH_MS = 1_800_000_000_000;

/** A wall clock that is off by `offsetMs`, in epoch milliseconds. */
export function wallMsAt(nowUs: number, offsetMs: number): number {
  return SIM_EPOCH_MS + Math.floor(nowUs / 1000) + offsetMs;
}

/** The machine of all processes. Its monotonic clock stops while it is suspended, as on Linux. */
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
    return Math.floor(Math.max(this.#clock.nowUs, this.#suspendedUntilUs) - this.#suspendedUs);
  }
}
