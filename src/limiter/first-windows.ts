import type { Window } from "../core/limits/window-log.ts";

/** This many windows after the first full one are tried: the second and the third. */
const TRIED_WINDOWS = 2;
/** A window of fewer units has no burst that a server could reject. */
const MIN_LIMIT = 3;
/** Requests are sent one at a time during the first 1/20 of a window, but for at most a second. */
const ALONE_PART = 20;
const MAX_ALONE_US = 1_000_000;

/**
 * Tries the second and the third window of a key. A server that counts with two buckets accepts the first burst, and
 * rejects most of the second although no window was exceeded (law L12). So these bursts begin with single requests, each
 * sent when the one before was answered: the first rejection is then the only one.
 */
export class FirstWindows {
  /** Number of the present window, from 1, if each window is full. */
  #number = 0;
  /** When the first unit of the present window was granted. */
  #sinceUs = 0;
  #spanUs = 0;

  /** Whether the unit with this number lies in one of the windows that are tried. */
  static isTried(unit: number, { limit }: Window): boolean {
    return limit >= MIN_LIMIT && unit > limit && unit <= (1 + TRIED_WINDOWS) * limit;
  }

  /** The unit with this number is granted now. `window` is the shortest window of the key. */
  granted(unit: number, { limit, spanUs }: Window, nowUs: number): void {
    const number = Math.ceil(unit / limit);
    if (number === this.#number) return;
    this.#number = number;
    this.#sinceUs = nowUs;
    this.#spanUs = spanUs;
  }

  /** Until when requests of the present window are sent one at a time. */
  get aloneUntilUs(): number {
    return this.#sinceUs + Math.min(MAX_ALONE_US, Math.floor(this.#spanUs / ALONE_PART));
  }
}

/** The window that is over first; undefined without windows. */
export function shortestWindow(windows: readonly Window[]): Window | undefined {
  let shortest = windows[0];
  for (const window of windows) if (shortest === undefined || window.spanUs < shortest.spanUs) shortest = window;
  return shortest;
}
