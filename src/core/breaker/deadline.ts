/**
 * Processes wait in monotonic time and publish deadlines in wall time (law B8).
 * Both clocks are read at the same moment.
 */
export interface ClockReading {
  readonly monotonicUs: number;
  readonly wallMs: number;
}

/** The deadline in epoch milliseconds, for events and tables. Rounded up, so that it is never early. */
export function wallDeadlineMs(deadlineUs: number, { monotonicUs, wallMs }: ClockReading): number {
  return wallMs + Math.ceil((deadlineUs - monotonicUs) / 1000);
}
