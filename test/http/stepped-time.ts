import { sleep } from "../../src/time/sleep.ts";
import { systemTime } from "../../src/time/system-time.ts";
import type { Time, Timer } from "../../src/time/time.ts";

interface ArmedTimer {
  readonly dueUs: number;
  readonly fire: () => void;
  real: Timer;
}

/**
 * The clocks of the system, which a test can advance with `step`. A hub on this clock uses real sockets and files, and a
 * test does not have to wait for the end of a cooldown.
 */
export class SteppedTime implements Time {
  readonly #armed = new Set<ArmedTimer>();
  #aheadMs = 0;

  monotonicUs(): number {
    return systemTime.monotonicUs() + this.#aheadMs * 1000;
  }

  machineUs(): number {
    return systemTime.machineUs() + this.#aheadMs * 1000;
  }

  wallMs(): number {
    return systemTime.wallMs() + this.#aheadMs;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const run = () => {
      this.#armed.delete(armed);
      fire();
    };
    const dueUs = this.monotonicUs() + delayMs * 1000;
    const armed: ArmedTimer = { dueUs, fire: run, real: systemTime.setTimer(delayMs, run) };
    this.#armed.add(armed);
    return {
      cancel: () => {
        this.#armed.delete(armed);
        armed.real.cancel();
      },
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this, ms, signal);
  }

  step(ms: number): void {
    this.#aheadMs += ms;
    for (const armed of this.#armed) {
      armed.real.cancel();
      armed.real = systemTime.setTimer((armed.dueUs - this.monotonicUs()) / 1000, armed.fire);
    }
  }
}
