/**
 * A sliding log for several windows: computes when the next request may be sent.
 *
 * A unit is written when its request is written to the connection (law L1 in docs/concepts.md). Units are numbered in
 * this order: 1, 2, 3, … A window of N allows unit n once its span has passed since unit n-N was written. If this
 * holds for every n, no interval as long as the span contains more than N units (law L1). The check needs no scan, only
 * one look-up by number for each window.
 *
 * Units that are granted but not yet written (`pending`) get the next numbers and count as written now.
 *
 * A window of more than 200 units stores only every g-th stamp, g = ⌈N / 200⌉, and reads the next stored one in place
 * of the exact one. That is never earlier, so the law holds. The cost: such a window admits as if its limit were up to
 * g - 1 lower, less than half a percent of N.
 */
export interface Window {
  readonly limit: number;
  /** The window with its guard, in whole microseconds; a stretched rate (law L9) makes it longer. */
  readonly spanUs: number;
  /** A stamp is stored for every `grain`-th unit. It stays the same when the limit is lowered later. */
  readonly grain: number;
  /** Maximum number of stored stamps. */
  readonly capacity: number;
}

/** A log as plain data, for stores. */
export interface WindowLogState {
  readonly written: number;
  readonly pending: number;
  readonly lastUs: number;
  readonly rings?: readonly Float64Array[] | undefined;
}

const MAX_STAMPS = 200;
/** Larger numbers of units are not exact any more, and no window counts so many. */
const MAX_NUMBER = 2 ** 52;
const INITIAL_CAPACITY = 8;

export function makeWindow(limit: number, spanUs: number): Window {
  const grain = Math.ceil(limit / MAX_STAMPS);
  return { limit, spanUs, grain, capacity: Math.ceil(limit / grain) + 1 };
}

export class WindowLog {
  /** Units written so far. */
  written = 0;
  /** Units granted and not yet written. */
  pending = 0;
  /** When the newest unit was written. Not valid while `written` is 0. */
  lastUs = 0;
  /** Units of the newest send, which may not be written yet. */
  lastUnits = 1;
  /** One ring buffer of stamps for each window. Absent while all units were written at `lastUs`, to save memory. */
  #rings: Float64Array[] | undefined;

  static restore({ written, pending, lastUs, rings }: WindowLogState): WindowLog {
    const log = new WindowLog();
    log.written = written;
    log.pending = pending;
    log.lastUs = lastUs;
    log.#rings = rings?.map(ring => ring.slice());
    // Without rings there was one send, or a burst.
    if (rings === undefined) log.lastUnits = written;
    return log;
  }

  /**
   * Merges the written units of several logs into one log for other windows. As with `replaceWindows`, no stamp is
   * earlier than the write of its unit.
   */
  static merged(
    windows: readonly Window[],
    sources: readonly { readonly log: WindowLog; readonly windows: readonly Window[] }[],
  ): WindowLog {
    const maxLimit = Math.max(0, ...windows.map(({ limit }) => limit));
    const step = Math.ceil(maxLimit / MAX_STAMPS);
    const chunks = sources.flatMap(({ log, windows: from }) => log.#newestChunks(from, maxLimit, step));
    const merged = new WindowLog();
    for (const { units, atUs } of chunks.sort((a, b) => a.atUs - b.atUs)) merged.write(windows, units, atUs);
    merged.lastUnits = Math.max(1, ...sources.map(({ log }) => log.lastUnits));
    return merged;
  }

  dump(): WindowLogState {
    const { written, pending, lastUs } = this;
    return { written, pending, lastUs, rings: this.#rings?.map(ring => ring.slice()) };
  }

  /**
   * The earliest instant at which `units` more may be written; at or before `nowUs` means now.
   * `spacingUs` is the minimum distance between two sends of a smoothed key, 0 for none.
   */
  earliestUs(windows: readonly Window[], spacingUs: number, units: number, nowUs: number): number {
    let earliestUs = spacingUs > 0 ? this.#spacedUs(spacingUs, nowUs) : 0;
    for (let index = 0; index < windows.length; index += 1) {
      const freeUs = this.windowFreeUs(index, windows[index] as Window, units, nowUs);
      if (freeUs > earliestUs) earliestUs = freeUs;
    }
    return earliestUs;
  }

  /**
   * When the last of `units` queued units may be written, if all of them are written as early as the windows permit. An
   * estimate, because pending units may be written later.
   */
  expectedUs(windows: readonly Window[], spacingUs: number, units: number, nowUs: number): number {
    let expectedUs = spacingUs > 0 ? this.#spacedUs(spacingUs, nowUs) + (units - 1) * spacingUs : 0;
    for (let index = 0; index < windows.length; index += 1) {
      const window = windows[index] as Window;
      const unit = this.written + this.pending + units - window.limit;
      const rounds = unit > this.written ? Math.ceil((unit - this.written) / window.limit) : 0;
      const freeUs = this.stampUs(index, window, unit - rounds * window.limit, nowUs) + window.spanUs;
      const windowUs = rounds === 0 ? freeUs : Math.max(nowUs, freeUs) + rounds * window.spanUs;
      if (windowUs > expectedUs) expectedUs = windowUs;
    }
    return expectedUs;
  }

  /** As `earliestUs`, for one window; -Infinity if no stored unit can delay the request. */
  windowFreeUs(index: number, window: Window, units: number, nowUs: number): number {
    const unit = this.written + this.pending + units - window.limit;
    return unit <= 0 ? Number.NEGATIVE_INFINITY : this.stampUs(index, window, unit, nowUs) + window.spanUs;
  }

  /** When a unit was written, or slightly later. `nowUs` for a pending unit, -Infinity for one no longer stored. */
  stampUs(index: number, { grain }: Window, unit: number, nowUs: number): number {
    if (unit <= 0) return Number.NEGATIVE_INFINITY;
    if (unit > this.written) return nowUs;
    const ring = this.#rings?.[index];
    if (ring === undefined) return this.lastUs;
    const mark = Math.ceil(unit / grain);
    const newest = Math.floor(this.written / grain);
    // After the newest stored stamp only `lastUs` is known.
    if (mark > newest) return this.lastUs;
    return mark > newest - ring.length ? (ring[mark % ring.length] as number) : Number.NEGATIVE_INFINITY;
  }

  /**
   * Units in the window now: at most `limit` written ones, and all pending ones. A binary search, too slow for each
   * request.
   */
  usedUnits(index: number, window: Window, nowUs: number): number {
    let low = Math.max(1, this.written - window.limit + 1);
    let high = this.written + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.stampUs(index, window, middle, nowUs) > nowUs - window.spanUs) high = middle;
      else low = middle + 1;
    }
    return this.written + 1 - low + this.pending;
  }

  reserve(units: number): void {
    this.pending += units;
    this.lastUnits = units;
  }

  giveBack(units: number): void {
    this.pending -= units;
  }

  /** Records reserved units as written now. */
  writeReserved(windows: readonly Window[], units: number, nowUs: number): void {
    this.pending -= units;
    this.write(windows, units, nowUs);
  }

  /**
   * Records units that were not reserved as written at `atUs`, or at `lastUs` if that is later: stamps never decrease.
   */
  write(windows: readonly Window[], units: number, atUs: number): void {
    const nowUs = this.written > 0 && this.lastUs > atUs ? this.lastUs : atUs;
    if (this.written + units > MAX_NUMBER) this.#renumber(units);
    if (this.written > 0 && this.#rings === undefined && nowUs !== this.lastUs) this.#createRings(windows);
    const first = this.written + 1;
    this.written += units;
    this.lastUs = nowUs;
    this.lastUnits = units;
    if (this.#rings === undefined) return;
    for (let index = 0; index < windows.length; index += 1) {
      const { grain, capacity } = windows[index] as Window;
      const newest = Math.floor(this.written / grain);
      for (let mark = Math.max(Math.ceil(first / grain), newest - capacity + 1); mark <= newest; mark += 1) {
        const ring = this.#ringFor(index, capacity, mark);
        ring[mark % ring.length] = nowUs;
      }
    }
  }

  /**
   * Removes units of a request that was written at `atUs`, as if it had used less. No other unit gets an earlier stamp,
   * so that the windows never admit more than the units that are left allow.
   */
  refund(windows: readonly Window[], units: number, atUs: number): void {
    const removed = Math.min(units, this.written);
    this.#rings = this.#rings?.map((ring, index) => {
      const window = windows[index] as Window;
      // A unit without a stored stamp was written at the oldest stored one, or earlier.
      const oldestMark = Math.max(1, Math.floor(this.written / window.grain) - ring.length + 1);
      const oldestUs = this.stampUs(index, window, oldestMark * window.grain, this.lastUs);
      const first = oldestUs >= atUs ? 1 : this.#firstUnitSince(index, window, atUs);
      const newest = Math.floor((this.written - removed) / window.grain);
      const moved = new Float64Array(ring.length);
      for (let mark = newest; mark > Math.max(0, newest - ring.length); mark -= 1) {
        const unit = mark * window.grain;
        const stampUs = this.stampUs(index, window, unit < first ? unit : unit + removed, this.lastUs);
        moved[mark % ring.length] = Math.max(oldestUs, stampUs);
      }
      return moved;
    });
    this.written -= removed;
  }

  /**
   * Continues with other windows. Every unit still counts. If the old windows have several stamps of a unit, the
   * earliest is the most exact and is kept. A unit without a stored stamp gets the oldest stored one.
   */
  replaceWindows(from: readonly Window[], to: readonly Window[]): void {
    if (this.#rings === undefined) return;
    this.#rings = to.map(({ grain, capacity }) => {
      const newest = Math.floor(this.written / grain);
      const ring = new Float64Array(Math.min(capacity, Math.max(INITIAL_CAPACITY, newest)));
      let oldestUs = this.lastUs;
      for (let mark = newest; mark > Math.max(0, newest - ring.length); mark -= 1) {
        const stampUs = this.#exactStampUs(from, mark * grain);
        if (stampUs < oldestUs) oldestUs = stampUs;
        ring[mark % ring.length] = oldestUs;
      }
      return ring;
    });
  }

  /** Whether all units were written at `lastUs`, and none is pending. */
  get isOneBurst(): boolean {
    return this.#rings === undefined && this.pending === 0;
  }

  /** True when the log can no longer delay a request, so that deleting it changes nothing (law L11). */
  isExpired(windows: readonly Window[], spacingUs: number, nowUs: number): boolean {
    if (this.pending > 0) return false;
    if (this.written === 0) return true;
    const quietUs = nowUs - this.lastUs;
    return quietUs >= spacingUs && windows.every(({ spanUs }) => quietUs >= spanUs);
  }

  /** The first unit whose stamp is `atUs` or later; one above the last if there is none. */
  #firstUnitSince(index: number, window: Window, atUs: number): number {
    let low = 1;
    let high = this.written + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.stampUs(index, window, middle, this.lastUs) >= atUs) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The last `count` units in chunks of `step`, and the earlier units in one chunk. A chunk has the time of its last unit. */
  #newestChunks(
    windows: readonly Window[],
    count: number,
    step: number,
  ): { readonly units: number; readonly atUs: number }[] {
    const chunks: { units: number; atUs: number }[] = [];
    const oldest = Math.max(0, this.written - count);
    let atUs = this.lastUs;
    for (let unit = this.written; unit > oldest; unit -= step) {
      atUs = Math.min(atUs, this.#exactStampUs(windows, unit));
      chunks.push({ units: Math.min(step, unit - oldest), atUs });
    }
    // Windows that are set later may be longer, and count the earlier units again.
    if (oldest > 0) chunks.push({ units: oldest, atUs: Math.min(atUs, this.#exactStampUs(windows, oldest)) });
    return chunks;
  }

  /** When a unit was written, by the most exact stamp of all windows; Infinity if none is stored. */
  #exactStampUs(windows: readonly Window[], unit: number): number {
    let exactUs = Number.POSITIVE_INFINITY;
    for (let index = 0; index < windows.length; index += 1) {
      const stampUs = this.stampUs(index, windows[index] as Window, unit, this.lastUs);
      if (stampUs !== Number.NEGATIVE_INFINITY) exactUs = Math.min(exactUs, stampUs);
    }
    return exactUs;
  }

  #spacedUs(spacingUs: number, nowUs: number): number {
    if (this.pending > 0) return nowUs + spacingUs;
    return this.written > 0 ? this.lastUs + spacingUs : 0;
  }

  /**
   * Gives the last unit a smaller number. All units before it count as written with it, which delays the next requests by
   * a window at most: that happens once in thousands of years, or after absurd costs.
   */
  #renumber(units: number): void {
    this.#rings = undefined;
    this.written = Math.min(this.written, MAX_NUMBER / 2, MAX_NUMBER - units);
  }

  /** Called when stamps differ for the first time: all units so far were written at `lastUs`. */
  #createRings(windows: readonly Window[]): void {
    this.#rings = windows.map(({ grain, capacity }) => {
      const needed = Math.floor(this.written / grain);
      return new Float64Array(Math.min(capacity, Math.max(INITIAL_CAPACITY, needed))).fill(this.lastUs);
    });
  }

  /**
   * The ring, grown before it would overwrite a stamp, up to the capacity of the window. Expired stamps are kept too,
   * because a window that is stretched later (law L9) counts them again.
   */
  #ringFor(index: number, capacity: number, mark: number): Float64Array {
    const rings = this.#rings as Float64Array[];
    const ring = rings[index] as Float64Array;
    if (mark <= ring.length || ring.length >= capacity) return ring;
    const grown = new Float64Array(Math.min(capacity, ring.length * 2));
    for (let old = mark - ring.length; old < mark; old += 1)
      grown[old % grown.length] = ring[old % ring.length] as number;
    rings[index] = grown;
    return grown;
  }
}
