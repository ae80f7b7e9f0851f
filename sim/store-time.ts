import { sleep } from "../src/time/sleep.ts";
import type { Time, Timer } from "../src/time/time.ts";

/** The clock of a store. A memory store sets no timers. */
export class StoreTime implements Time {
  nowUs: () => number;

  constructor(nowUs: () => number) {
    this.nowUs = nowUs;
  }

  monotonicUs(): number {
    return this.nowUs();
  }

  machineUs(): number {
    return this.nowUs();
  }

  wallMs(): number {
    return Math.floor(this.nowUs() / 1000);
  }

  setTimer(): Timer {
    throw new Error("a memory store sets no timers");
  }

  sleep(ms: number): Promise<void> {
    return sleep(this, ms);
  }
}
