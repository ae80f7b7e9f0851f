/** What a bench is: a file beside `run.ts` that exports `bench`. */
import type { BenchTable, Figure } from "./report.ts";

export interface BenchOptions {
  /** A short run shows that everything works; its numbers are not worth quoting. */
  readonly isQuick: boolean;
}

export interface PartReport {
  readonly tables: readonly BenchTable[];
  /** What this part should reach. */
  readonly figures: readonly Figure[];
}

export interface BenchPart {
  measure(options: BenchOptions): Promise<PartReport>;
}

export interface Bench {
  /**
   * Each part runs in a process of its own, so that none inherits another's heap or what the compiler learned there.
   * They are loaded on demand: listing the names must not need the peers.
   */
  readonly parts: Readonly<Record<string, () => Promise<BenchPart>>>;
}
