import { SystemTime } from "../../src/time/system-time.ts";

/**
 * The real clock, and what was skipped. Everything of ours in a bench has one of these: two kinds of clock would make
 * the compiler treat all of them worse than a program with one, and a clock that costs nothing would flatter us.
 */
export class SkippingTime extends SystemTime {
  /** A day to begin with: the clock of a process that has just started is a small integer, which costs less to keep. */
  skippedUs = 86_400_000_000;

  override monotonicUs(): number {
    return super.monotonicUs() + this.skippedUs;
  }
}
