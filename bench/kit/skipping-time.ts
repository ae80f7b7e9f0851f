import { SystemTime } from "../../src/time/system-time.ts";

/**
 * The real clock plus skipped time. All objects of docstokg in a benchmark use this class. With two clock classes the
 * compiler would optimise less than in a program with one, and a clock that costs nothing would give too good numbers.
 */
export class SkippingTime extends SystemTime {
  /** Starts at one day: the clock of a new process is a small integer, which V8 stores more cheaply. */
  skippedUs = 86_400_000_000;

  override monotonicUs(): number {
    return super.monotonicUs() + this.skippedUs;
  }
}
