import type { PullResult } from "../../src/ontology/pull-result.ts";

/** The outcome of each id, or the message of its failure. */
export function outcomes(results: readonly PullResult[]): Record<string, string> {
  return Object.fromEntries(
    results.map(result => [result.id, result.outcome === "failed" ? result.message : result.outcome]),
  );
}
