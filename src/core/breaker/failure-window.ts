/** Detects `threshold` failures within a rolling window (law B6). */
export class FailureWindow {
  /** The newest failures, at most `threshold` of them. */
  #timesUs: number[] = [];

  /** Records a failure. Returns true, and clears the window, when the threshold is reached. */
  add(nowUs: number, threshold: number, windowUs: number): boolean {
    this.#timesUs.push(nowUs);
    while (this.#timesUs.length > threshold) this.#timesUs.shift();
    const oldestUs = this.#timesUs[0] ?? nowUs;
    if (this.#timesUs.length < threshold || nowUs - oldestUs >= windowUs) return false;
    this.clear();
    return true;
  }

  /** Failures within the window now. */
  count(nowUs: number, windowUs: number): number {
    return this.#timesUs.filter(us => nowUs - us < windowUs).length;
  }

  clear(): void {
    this.#timesUs = [];
  }
}
