/** What the processes do while the page is watched. */
export interface DashboardLoad {
  readonly processes: number;
  /** One key each. */
  readonly hosts: readonly string[];
  readonly eventsPerSecond: number;
  /** Windows with a page and without one, in turns. */
  readonly rounds: number;
  /** Length of a window. */
  readonly seconds: number;
  /** Circuits that are opened to measure the delay. */
  readonly probes: number;
}

/** The grant, the attempt, the outcome for the breakers, and the call. */
const EVENTS_PER_REQUEST = 4;

export function requestsPerSecond({ eventsPerSecond }: DashboardLoad): number {
  return eventsPerSecond / EVENTS_PER_REQUEST;
}
