import type { Window } from "../core/limits/window-log.ts";

/** What the shared store last said about the use of a budget, over all processes. */
export interface SharedUse {
  /** When the request was sent: at the earliest, the store decided then. */
  readonly sentUs: number;
  /** When the reply arrived: at the latest, the store decided then. */
  readonly atUs: number;
  /** Units that counted in each window, leased ones included. */
  readonly used: readonly number[];
}

/** Leased units may be written this long after the lease, even if the store is lost meanwhile. */
export const USE_WITHIN_US = 1_000_000;
/** If the store was never asked about a budget, only windows up to this length count as used when the store is lost. */
const UNKNOWN_WINDOW_US = 60_000_000;

/**
 * The most units that can count in each window now: those that the store last reported, and those that other processes
 * can have leased since (no window grants more than its limit in any span). Without a reply nothing is known: then a
 * window of at most a minute counts as full, a longer one as empty.
 */
export function knownUse(windows: readonly Window[], use: SharedUse | undefined, nowUs: number): readonly number[] {
  if (use === undefined) return windows.map(({ limit, spanUs }) => (spanUs <= UNKNOWN_WINDOW_US ? limit : 0));
  const sinceUs = nowUs - use.sentUs;
  const since = Math.min(...windows.map(({ limit, spanUs }) => limit * (Math.floor(sinceUs / spanUs) + 1)));
  return windows.map(({ limit, spanUs }, index) => {
    const before = sinceUs < spanUs ? (use.used[index] ?? limit) : 0;
    return Math.min(limit, before + since);
  });
}

/**
 * As `knownUse`, for a store that lacks only its last changes. A window of more than a minute counts only the use that the
 * store has announced: a switch to a replica would otherwise stop a daily quota for a day.
 */
export function saidUse(windows: readonly Window[], use: SharedUse | undefined, nowUs: number): readonly number[] {
  const known = knownUse(windows, use, nowUs);
  return windows.map(({ spanUs }, index) => {
    if (use === undefined || spanUs <= UNKNOWN_WINDOW_US) return known[index] ?? 0;
    return nowUs - use.sentUs < spanUs ? (use.used[index] ?? 0) : 0;
  });
}

/**
 * The units that one of `processes` must count as used in its share when the store is lost, so that all processes
 * together send no more than was free. It is its share of the limit, less its share of the free units, less the
 * units that it has sent itself, because its own windows count these.
 */
export function assumedUnits(
  windows: readonly Window[],
  use: readonly number[],
  own: readonly number[],
  processes: number,
): number {
  const assumed = windows.map(({ limit }, index) => {
    const share = Math.floor(limit / processes);
    const free = Math.floor((limit - (use[index] ?? limit)) / processes);
    return share - free - (own[index] ?? 0);
  });
  return Math.max(0, ...assumed);
}
