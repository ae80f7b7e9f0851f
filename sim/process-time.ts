import { sleep } from "../src/time/sleep.ts";
import type { Time, Timer } from "../src/time/time.ts";
import type { Clock, Loop } from "./clock.ts";
import { type Machine, WORLD_WALL_MS } from "./machine.ts";
import type { ProcessPlan } from "./plan.ts";
import type { Luck } from "./random.ts";

/** Time as one process sees it: an origin of its own, early timers, a wall clock that is off and may step, stalls. */
export class ProcessTime implements Time, Loop {
  readonly #clock: Clock;
  readonly #machine: Machine;
  readonly #luck: Luck;
  readonly #plan: ProcessPlan;
  #stalledUntilUs = 0;
  #wallOffsetMs: number;
  isDead = false;
  /** Timers that are armed; some at the end of a run are a leak. */
  armed = 0;

  constructor(clock: Clock, machine: Machine, plan: ProcessPlan, luck: Luck) {
    this.#clock = clock;
    this.#machine = machine;
    this.#plan = plan;
    this.#luck = luck;
    this.#wallOffsetMs = plan.wallOffsetMs;
  }

  get asleepUntilUs(): number {
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
    return WORLD_WALL_MS + Math.floor(this.#clock.nowUs / 1000) + this.#wallOffsetMs;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const earlyUs = this.#luck.whole(0, this.#plan.earlyUs);
    // Whole milliseconds, as Node's timers have.
    const delayUs = Math.max(100, Math.max(1, Math.ceil(delayMs)) * 1000 - earlyUs);
    const dueUs = this.#machine.machineUs() + delayUs;
    let isArmed = true;
    this.armed += 1;
    const disarm = () => {
      if (isArmed) this.armed -= 1;
      isArmed = false;
    };
    const arm = () =>
      this.#clock.at(this.#clock.nowUs + dueUs - this.#machine.machineUs(), this, () => {
        // The machine's clock stood still while it was suspended, and its timers with it.
        if (this.#machine.machineUs() < dueUs) {
          alarm = arm();
          return;
        }
        disarm();
        fire();
      });
    let alarm = arm();
    return {
      cancel: () => {
        disarm();
        alarm.isCancelled = true;
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

  /** Whoever reads the clock has computed something before, and that took time. */
  #compute(): void {
    if (this.#plan.creepUs > 0) this.#clock.creep(this.#luck.whole(0, this.#plan.creepUs));
  }
}
