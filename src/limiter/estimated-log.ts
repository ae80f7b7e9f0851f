import type { Window, WindowLog } from "../core/limits/window-log.ts";

/** A window log, and the units that an estimate has charged to it. */
export class EstimatedLog {
  readonly #log: WindowLog;
  readonly #windows: readonly Window[];
  readonly #nowUs: number;
  /** Units that were written or granted in reality. */
  readonly #known: number;
  /** For each request of the estimate: when it starts, and the sum of the units up to it. */
  readonly #startsUs: number[] = [];
  readonly #sums: number[] = [];

  constructor(log: WindowLog, windows: readonly Window[], nowUs: number) {
    this.#log = log;
    this.#windows = windows;
    this.#nowUs = nowUs;
    this.#known = log.written + log.pending;
  }

  /** Units charged by the estimate. */
  get charged(): number {
    return this.#sums.at(-1) ?? 0;
  }

  /** Units of the newest send, real or estimated. */
  get lastUnits(): number {
    return this.#sums.length === 0 ? this.#log.lastUnits : this.charged - (this.#sums.at(-2) ?? 0);
  }

  charge(units: number, atUs: number): void {
    this.#sums.push(this.charged + units);
    this.#startsUs.push(atUs);
  }

  /** When all windows admit the units. */
  readyUs(units: number): number {
    let readyUs = 0;
    for (let index = 0; index < this.#windows.length; index += 1) {
      const freeUs = this.windowUs(index, units);
      if (freeUs > readyUs) readyUs = freeUs;
    }
    return readyUs;
  }

  spacedUs(spacingUs: number, units: number): number {
    const lastUs = this.#startsUs.at(-1);
    return lastUs === undefined ? this.#log.earliestUs([], spacingUs, units, this.#nowUs) : lastUs + spacingUs;
  }

  /** When the window with this index admits the units. */
  windowUs(index: number, units: number): number {
    const window = this.#windows[index] as Window;
    const unit = this.#known + this.charged + units - window.limit;
    return unit <= 0 ? 0 : this.#stampUs(index, window, unit) + window.spanUs;
  }

  /** As `WindowLog.stampUs`, over real and estimated units: a coarse window knows only every `grain`-th stamp. */
  #stampUs(index: number, window: Window, unit: number): number {
    const stamped = Math.ceil(unit / window.grain) * window.grain;
    if (this.charged === 0 || stamped <= this.#known) return this.#log.stampUs(index, window, unit, this.#nowUs);
    return this.#startUs(Math.min(stamped - this.#known, this.charged));
  }

  /** When the n-th unit of the estimate starts. */
  #startUs(unit: number): number {
    let low = 0;
    let high = this.#sums.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sums[middle] as number) >= unit) high = middle;
      else low = middle + 1;
    }
    return this.#startsUs[low] as number;
  }
}
