/**
 * The shortest possible makespan. The makespans of the clients are divided by it.
 *
 * The earliest time of request n depends only on earlier requests, and sending one of those earlier never makes it
 * later. So the schedule that sends each request as early as possible is the fastest; `test/race.test.ts` compares it
 * with all other schedules of small cases.
 */
import type { RaceLimits, RaceRole, RaceWindow } from "./limits.ts";

/** From `fromMs`, included, to `toMs`, excluded. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface BoundInput {
  /** Number of requests by role. */
  readonly requests: Readonly<Partial<Record<RaceRole, number>>>;
  readonly limits: RaceLimits;
  /** Added to every window. @default 0 */
  readonly guardMs?: number;
  /**
   * Intervals in which no request can succeed: the server is down, or the client is blocked. Sorted, not overlapping.
   */
  readonly closed?: readonly Interval[];
  /** From this time on every limit is half as high. */
  readonly halvedAtMs?: number;
}

/**
 * The time at which the last request can be sent, if the first is sent at 0. With several roles it is a lower bound
 * that may not be reachable: the maximum over each role alone and over all roles under the total.
 */
export function fastestMs(input: BoundInput): number {
  const { requests, limits } = input;
  const { metadata = 0, artifact = 0 } = requests;
  return Math.max(
    lastMs(input, metadata, limits.metadata),
    lastMs(input, artifact, limits.artifact ?? []),
    lastMs(input, metadata + artifact, limits.total ?? []),
  );
}

function lastMs(input: BoundInput, count: number, windows: readonly RaceWindow[]): number {
  const sentMs: number[] = [];
  for (let index = 0; index < count; index += 1) sentMs.push(earliestMs(input, windows, sentMs));
  return sentMs.at(-1) ?? 0;
}

function earliestMs(input: BoundInput, windows: readonly RaceWindow[], sentMs: readonly number[]): number {
  const { halvedAtMs = Number.POSITIVE_INFINITY } = input;
  const fullLimitMs = openMs(input, allowedMs(input, windows, sentMs));
  if (fullLimitMs < halvedAtMs) return fullLimitMs;
  const halved = windows.map(({ limit, windowMs }) => ({ limit: Math.floor(limit / 2), windowMs }));
  return openMs(input, Math.max(halvedAtMs, allowedMs(input, halved, sentMs)));
}

/** A window of N allows a request when its length has passed since the N-th request before it. */
function allowedMs({ guardMs = 0 }: BoundInput, windows: readonly RaceWindow[], sentMs: readonly number[]): number {
  return windows.reduce((latestMs, { limit, windowMs }) => {
    const before = sentMs[sentMs.length - limit];
    return before === undefined ? latestMs : Math.max(latestMs, before + windowMs + guardMs);
  }, sentMs.at(-1) ?? 0);
}

function openMs({ closed = [] }: BoundInput, ms: number): number {
  return closed.reduce((atMs, { fromMs, toMs }) => (atMs >= fromMs && atMs < toMs ? toMs : atMs), ms);
}
