/**
 * The fastest that anybody could be who knows everything: what a makespan is measured against.
 *
 * The earliest instant for request n depends on earlier requests alone, and moving one of those forward never moves it
 * back. So the schedule that sends each request as early as it may is the fastest; `test/race.test.ts` compares it with
 * every other schedule of small cases.
 */
import type { RaceLimits, RaceRole, RaceWindow } from "./limits.ts";

/** From `fromMs` on and before `toMs`. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface BoundInput {
  /** How many of each role. */
  readonly requests: Readonly<Partial<Record<RaceRole, number>>>;
  readonly limits: RaceLimits;
  /** Added to every window. @default 0 */
  readonly guardMs?: number;
  /** When nothing can be had: the server is down, or the client stands still. In order, and apart. */
  readonly closed?: readonly Interval[];
  /** From here on every limit is half of what it was. */
  readonly halvedAtMs?: number;
}

/**
 * When the last request can be sent, the first being sent at 0. With several roles it is a bound that may not be
 * reachable: the latest of what each role needs alone, and all of them under the total.
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

/** A window of N allows a request once its length has passed since the N-th before it. */
function allowedMs({ guardMs = 0 }: BoundInput, windows: readonly RaceWindow[], sentMs: readonly number[]): number {
  return windows.reduce((latestMs, { limit, windowMs }) => {
    const before = sentMs[sentMs.length - limit];
    return before === undefined ? latestMs : Math.max(latestMs, before + windowMs + guardMs);
  }, sentMs.at(-1) ?? 0);
}

function openMs({ closed = [] }: BoundInput, ms: number): number {
  return closed.reduce((atMs, { fromMs, toMs }) => (atMs >= fromMs && atMs < toMs ? toMs : atMs), ms);
}
