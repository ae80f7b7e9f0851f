/**
 * A duration for messages and tables: `340 ms`, `4.2 s`, `45 s`.
 * Rounded up, so that a wait of the printed duration is always long enough. Pass `Math.floor` for an upper limit.
 */
export function formatWait(ms: number, round: (value: number) => number = Math.ceil): string {
  const wholeMs = round(ms);
  if (wholeMs < 1000) return `${wholeMs} ms`;
  const tenths = round(ms / 100);
  return tenths < 100 ? `${(tenths / 10).toFixed(1)} s` : `${round(ms / 1000)} s`;
}
