/**
 * The fastest that anybody could be who knows everything: what a makespan is measured against.
 *
 * The earliest instant for request n depends on earlier requests alone, and moving one of those forward never moves it
 * back. So the schedule that sends each request as early as it may is the fastest; `test/race.test.ts` compares it with
 * every other schedule of small cases.
 */
import type { Limits, Role, Window } from "./limits.ts";

/** From `fromMs` on and before `toMs`. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Course {
  /** How many of each role. */
  readonly requests: Readonly<Partial<Record<Role, number>>>;
  readonly limits: Limits;
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
export function fastestMs(course: Course): number {
  const { requests, limits } = course;
  const { metadata = 0, artifact = 0 } = requests;
  return Math.max(
    lastMs(course, metadata, limits.metadata),
    lastMs(course, artifact, limits.artifact ?? []),
    lastMs(course, metadata + artifact, limits.total ?? []),
  );
}

function lastMs(course: Course, count: number, windows: readonly Window[]): number {
  const sentMs: number[] = [];
  for (let index = 0; index < count; index += 1) sentMs.push(earliestMs(course, windows, sentMs));
  return sentMs.at(-1) ?? 0;
}

function earliestMs(course: Course, windows: readonly Window[], sentMs: readonly number[]): number {
  const { halvedAtMs = Number.POSITIVE_INFINITY } = course;
  const wholeMs = openMs(course, allowedMs(course, windows, sentMs));
  if (wholeMs < halvedAtMs) return wholeMs;
  const halved = windows.map(({ limit, windowMs }) => ({ limit: Math.floor(limit / 2), windowMs }));
  return openMs(course, Math.max(halvedAtMs, allowedMs(course, halved, sentMs)));
}

/** A window of N allows a request once its length has passed since the N-th before it. */
function allowedMs({ guardMs = 0 }: Course, windows: readonly Window[], sentMs: readonly number[]): number {
  return windows.reduce((latestMs, { limit, windowMs }) => {
    const before = sentMs[sentMs.length - limit];
    return before === undefined ? latestMs : Math.max(latestMs, before + windowMs + guardMs);
  }, sentMs.at(-1) ?? 0);
}

function openMs({ closed = [] }: Course, ms: number): number {
  return closed.reduce((atMs, { fromMs, toMs }) => (atMs >= fromMs && atMs < toMs ? toMs : atMs), ms);
}
