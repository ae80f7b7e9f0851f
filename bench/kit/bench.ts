/** A benchmark: a file beside `run.ts` that exports `bench`. */
import type { BenchTable, Figure } from "./report.ts";

export interface BenchOptions {
  /** A short run, to see that everything works. Its numbers are not reliable. */
  readonly isQuick: boolean;
}

export interface PartReport {
  readonly tables: readonly BenchTable[];
  /** The targets of this part. */
  readonly figures: readonly Figure[];
}

export interface BenchPart {
  measure(options: BenchOptions): Promise<PartReport>;
}

export interface Bench {
  /**
   * Each part runs in its own process, so that heap and compiled code of one do not affect another. Loaded on demand:
   * listing the names must not load the other libraries.
   */
  readonly parts: Readonly<Record<string, () => Promise<BenchPart>>>;
}
