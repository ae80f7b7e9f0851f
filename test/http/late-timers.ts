import { FakeTime } from "../../src/testing/fake-time.ts";

/** A clock that is ahead of its timers, as on a busy event loop. */
export class LateTimers extends FakeTime {
  lateUs = 0;

  override monotonicUs(): number {
    return super.monotonicUs() + this.lateUs;
  }
}
