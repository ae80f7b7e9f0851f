import { type Profiler, Session } from "node:inspector";

/**
 * The code that inputs have reached, as V8 counts it. Each function is marked by itself, because the range of a function
 * contains those of the functions inside it.
 */
export class Coverage implements Disposable {
  readonly #session = new Session();
  /** By script and start of the function: one byte for each character, 1 if it was reached. */
  readonly #reached = new Map<string, Uint8Array>();
  readonly #isCounted: (url: string) => boolean;

  /** @param isCounted whether the code of a script counts, by its URL */
  constructor(isCounted: (url: string) => boolean) {
    this.#isCounted = isCounted;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Marks the code that was reached since the last call. True if some of it is new. */
  add(): boolean {
    let isNew = false;
    for (const { url, functions } of this.#take()) {
      if (!this.#isCounted(url)) continue;
      for (const { ranges } of functions) if (this.#mark(url, ranges)) isNew = true;
    }
    return isNew;
  }

  /** True if code was reached since the last call that is not marked. Marks nothing. */
  hasNew(): boolean {
    return this.#take().some(
      ({ url, functions }) =>
        this.#isCounted(url) &&
        functions.some(({ ranges }) => isBeyond(reachedBy(ranges), this.#reached.get(keyOf(url, ranges)))),
    );
  }

  /** Characters of code that are marked. */
  get total(): number {
    let total = 0;
    for (const marks of this.#reached.values()) for (const mark of marks) total += mark;
    return total;
  }

  [Symbol.dispose](): void {
    this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }

  /** In the same thread the answer is there when `post` returns. */
  #take(): readonly Profiler.ScriptCoverage[] {
    let scripts: readonly Profiler.ScriptCoverage[] = [];
    this.#session.post("Profiler.takePreciseCoverage", (error, { result }) => {
      if (error) throw error;
      scripts = result;
    });
    return scripts;
  }

  #mark(url: string, ranges: readonly Profiler.CoverageRange[]): boolean {
    const key = keyOf(url, ranges);
    const now = reachedBy(ranges);
    const before = this.#reached.get(key);
    if (!isBeyond(now, before)) return false;
    if (before === undefined) this.#reached.set(key, now);
    else for (const [index, mark] of now.entries()) if (mark === 1) before[index] = 1;
    return true;
  }
}

function keyOf(url: string, [whole]: readonly Profiler.CoverageRange[]): string {
  return `${url}:${whole?.startOffset}`;
}

/** Outer ranges come before the ranges inside them, and those count. */
function reachedBy(ranges: readonly Profiler.CoverageRange[]): Uint8Array {
  const { startOffset: start, endOffset: end } = ranges[0] ?? { startOffset: 0, endOffset: 0 };
  const marks = new Uint8Array(end - start);
  for (const { startOffset, endOffset, count } of ranges)
    marks.fill(count > 0 ? 1 : 0, startOffset - start, endOffset - start);
  return marks;
}

function isBeyond(now: Uint8Array, before: Uint8Array | undefined): boolean {
  return now.some((mark, index) => mark === 1 && before?.[index] !== 1);
}
