/**
 * Deadlines cross processes as wall time and are waited for in monotonic time (law B8).
 * Conversion happens at the edge, with both clocks read at one moment.
 */
export interface ClockReading {
  readonly monotonicUs: number;
  readonly wallMs: number;
}

/** What to write down for others. Rounded up: nobody is told to come early. */
export function wallDeadlineMs(deadlineUs: number, { monotonicUs, wallMs }: ClockReading): number {
  return wallMs + Math.ceil((deadlineUs - monotonicUs) / 1000);
}

/**
 * What another's note means here. A wall clock that stepped can make it absurd, so it is held between now and
 * `longestMs`: a step can lengthen a wait to what the policy allows, never beyond, and never turns it back in time.
 */
export function deadlineUs(untilWallMs: number, { monotonicUs, wallMs }: ClockReading, longestMs: number): number {
  const leftMs = Math.min(longestMs, Math.max(0, untilWallMs - wallMs));
  return monotonicUs + leftMs * 1000;
}
