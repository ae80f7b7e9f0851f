import { FakeTime } from "../../src/testing/fake-time.ts";
import type { Timer } from "../../src/time/time.ts";

/** Counts the timers that would keep a program alive. */
export class ReferencedTime extends FakeTime {
  readonly referenced = new Set<Timer>();

  override setTimer(delayMs: number, fire: () => void): Timer {
    const fake = super.setTimer(delayMs, () => {
      this.referenced.delete(timer);
      fire();
    });
    const timer: Timer = {
      cancel: () => {
        this.referenced.delete(timer);
        fake.cancel();
      },
      unref: () => this.referenced.delete(timer),
      ref: () => this.referenced.add(timer),
    };
    this.referenced.add(timer);
    return timer;
  }
}
