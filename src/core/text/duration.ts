const DAY_MS = 86_400_000;

/**
 * A duration for messages and tables: `340 ms`, `4.2 s`, `45 s`, `366 days`.
 * Rounded up, so that a wait of the printed duration is always long enough. Pass `Math.floor` for an upper limit.
 */
export function formatWait(ms: number, round: (value: number) => number = Math.ceil): string {
  if (ms >= 2 * DAY_MS && ms < Number.POSITIVE_INFINITY) return `${round(ms / DAY_MS)} days`;
  const wholeMs = round(ms);
  if (wholeMs < 1000) return `${wholeMs} ms`;
  const tenths = round(ms / 100);
  return tenths < 100 ? `${(tenths / 10).toFixed(1)} s` : `${round(ms / 1000)} s`;
}
