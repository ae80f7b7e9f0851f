/** Counts failures that lie close together: so many within a window (law B6). */
export class FailureWindow {
  /** The newest failures, never more than the threshold. */
  #timesUs: number[] = [];

  /** Notes a failure. True when it is the one too many; the window is empty again then. */
  add(nowUs: number, threshold: number, windowUs: number): boolean {
    this.#timesUs.push(nowUs);
    while (this.#timesUs.length > threshold) this.#timesUs.shift();
    const oldestUs = this.#timesUs[0] ?? nowUs;
    if (this.#timesUs.length < threshold || nowUs - oldestUs >= windowUs) return false;
    this.clear();
    return true;
  }

  /** How many count now. */
  count(nowUs: number, windowUs: number): number {
    return this.#timesUs.filter(us => nowUs - us < windowUs).length;
  }

  clear(): void {
    this.#timesUs = [];
  }
}
