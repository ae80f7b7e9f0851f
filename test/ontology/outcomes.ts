import type { PullResult } from "../../src/ontology/ontofetch.ts";

/** By id: its outcome, or why it failed. */
export function outcomes(results: readonly PullResult[]): Record<string, string> {
  return Object.fromEntries(
    results.map(result => [result.id, result.outcome === "failed" ? result.message : result.outcome]),
  );
}
