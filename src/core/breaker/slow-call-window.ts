export interface SlowCallPolicy {
  /** A call that was answered later than this is slow. */
  readonly slowUs: number;
  /** The share of slow calls that is too many, above 0 and at most 1. */
  readonly share: number;
  /** Fewer calls within the window say nothing. */
  readonly minCalls: number;
  readonly windowUs: number;
}

/** The window is counted in this many parts, so that its size does not depend on the number of calls. */
const PARTS = 10;

interface Part {
  readonly number: number;
  calls: number;
  slow: number;
}

/** Detects a share of slow calls within a rolling window, exact to a tenth of the window. */
export class SlowCallWindow {
  #parts: Part[] = [];

  /** Counts a call. Returns true, and clears the window, when too many calls of the window were slow. */
  add(nowUs: number, tookUs: number, { slowUs, share, minCalls, windowUs }: SlowCallPolicy): boolean {
    const number = Math.floor(nowUs / (windowUs / PARTS));
    this.#parts = this.#parts.filter(part => part.number > number - PARTS);
    let last = this.#parts.at(-1);
    if (last?.number !== number) {
      last = { number, calls: 0, slow: 0 };
      this.#parts.push(last);
    }
    last.calls += 1;
    if (tookUs > slowUs) last.slow += 1;
    const calls = this.#parts.reduce((sum, part) => sum + part.calls, 0);
    const slow = this.#parts.reduce((sum, part) => sum + part.slow, 0);
    if (calls < minCalls || slow < share * calls) return false;
    this.clear();
    return true;
  }

  /** False while calls of the window are counted. */
  isEmpty(nowUs: number, windowUs: number): boolean {
    const oldest = Math.floor(nowUs / (windowUs / PARTS)) - PARTS;
    return this.#parts.every(({ number }) => number <= oldest);
  }

  clear(): void {
    this.#parts = [];
  }
}
