import { sleep } from "../src/time/sleep.ts";
import type { Time, Timer } from "../src/time/time.ts";
import type { Clock, EventLoop } from "./clock.ts";
import { type Machine, SIM_EPOCH_MS } from "./machine.ts";
import type { ProcessPlan } from "./plan.ts";
import type { Random } from "./random.ts";

/** The clocks of one process: its own origin, early timers, a wall clock that is off and may step, and stalls. */
export class ProcessTime implements Time, EventLoop {
  readonly #clock: Clock;
  readonly #machine: Machine;
  readonly #random: Random;
  readonly #plan: ProcessPlan;
  #stalledUntilUs = 0;
  #wallOffsetMs: number;
  isDead = false;
  /** Armed timers. Any timer left at the end of a run is a leak. */
  armedTimers = 0;

  constructor(clock: Clock, machine: Machine, plan: ProcessPlan, random: Random) {
    this.#clock = clock;
    this.#machine = machine;
    this.#plan = plan;
    this.#random = random;
    this.#wallOffsetMs = plan.wallOffsetMs;
  }

  get blockedUntilUs(): number {
    return Math.max(this.#stalledUntilUs, this.#machine.suspendedUntilUs);
  }

  monotonicUs(): number {
    this.#compute();
    return this.#plan.originUs + this.#machine.machineUs();
  }

  machineUs(): number {
    this.#compute();
    return this.#machine.machineUs();
  }

  wallMs(): number {
    return Math.floor(this.wallUs / 1000);
  }

  /** The wall clock in microseconds, which no process can read. */
  get wallUs(): number {
    return (SIM_EPOCH_MS + this.#wallOffsetMs) * 1000 + this.#clock.nowUs;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const earlyUs = this.#random.whole(0, this.#plan.earlyUs);
    // Whole milliseconds, as in Node.
    const delayUs = Math.max(100, Math.max(1, Math.ceil(delayMs)) * 1000 - earlyUs);
    const dueUs = this.#machine.machineUs() + delayUs;
    let isArmed = true;
    this.armedTimers += 1;
    const disarm = () => {
      if (isArmed) this.armedTimers -= 1;
      isArmed = false;
    };
    const arm = () =>
      this.#clock.at(this.#clock.nowUs + dueUs - this.#machine.machineUs(), this, () => {
        // The machine was suspended meanwhile, and its clock stopped.
        if (this.#machine.machineUs() < dueUs) {
          task = arm();
          return;
        }
        disarm();
        fire();
      });
    let task = arm();
    return {
      cancel: () => {
        disarm();
        task.isCancelled = true;
      },
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this, ms, signal);
  }

  stall(us: number): void {
    this.#stalledUntilUs = Math.max(this.#stalledUntilUs, this.#clock.nowUs + us);
  }

  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Each read of the clock costs some time, as if the process had computed before it. */
  #compute(): void {
    if (this.#plan.computeUs > 0) this.#clock.advance(this.#random.whole(0, this.#plan.computeUs));
  }
}
