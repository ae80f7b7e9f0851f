/**
 * A duration for messages and tables: `340 ms`, `4.2 s`, `45 s`.
 * Rounded up, so that a wait of the printed duration is always long enough. Pass `Math.floor` for an upper limit.
 */
export function formatWait(ms: number, round: (value: number) => number = Math.ceil): string {
  if (ms < 1000) return `${round(ms)} ms`;
  if (ms < 10_000) return `${(round(ms / 100) / 10).toFixed(1)} s`;
  return `${round(ms / 1000)} s`;
}
