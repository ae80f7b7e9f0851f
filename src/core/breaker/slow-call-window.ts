export interface SlowCallPolicy {
  /** A call that was answered later than this is slow. */
  readonly slowUs: number;
  /** The share of slow calls that is too many, above 0 and at most 1. */
  readonly share: number;
  /** With fewer calls in the window their share is not judged. */
  readonly minCalls: number;
  readonly windowUs: number;
}

/** The window is counted in this many parts, so that its size does not depend on the number of calls. */
const PARTS = 10;

interface Part {
  /** A time, not an index: a reload may change the length of the parts. */
  readonly startUs: number;
  calls: number;
  slow: number;
}

/** Detects a share of slow calls within a rolling window, exact to a tenth of the window. */
export class SlowCallWindow {
  #parts: Part[] = [];

  /** Counts a call. Returns true, and clears the window, when too many calls of the window were slow. */
  add(nowUs: number, tookUs: number, { slowUs, share, minCalls, windowUs }: SlowCallPolicy): boolean {
    const startUs = partStartUs(nowUs, windowUs);
    this.#parts = this.#parts.filter(part => part.startUs > startUs - windowUs);
    let last = this.#parts.at(-1);
    if (last?.startUs !== startUs) {
      last = { startUs, calls: 0, slow: 0 };
      this.#parts.push(last);
    }
    last.calls += 1;
    if (tookUs > slowUs) last.slow += 1;
    const calls = this.#parts.reduce((sum, part) => sum + part.calls, 0);
    const slow = this.#parts.reduce((sum, part) => sum + part.slow, 0);
    // A quotient and not a product: 0.07 * 100 is more than 7.
    if (calls < minCalls || slow / calls < share) return false;
    this.clear();
    return true;
  }

  /** False while calls of the window are counted. */
  isEmpty(nowUs: number, windowUs: number): boolean {
    const endUs = partStartUs(nowUs, windowUs) - windowUs;
    return this.#parts.every(({ startUs }) => startUs <= endUs);
  }

  clear(): void {
    this.#parts = [];
  }
}

/** When the part of the window began that contains `nowUs`. Whole microseconds, so that parts can be compared. */
function partStartUs(nowUs: number, windowUs: number): number {
  const partUs = Math.ceil(windowUs / PARTS);
  return Math.floor(nowUs / partUs) * partUs;
}
