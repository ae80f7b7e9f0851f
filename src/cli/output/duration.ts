/** A span of time as people read it: never shorter than it is. */
export function formatWait(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  if (ms < 10_000) return `${(Math.ceil(ms / 100) / 10).toFixed(1)} s`;
  return `${Math.ceil(ms / 1000)} s`;
}

/** An instant in UTC, to the second. */
export function formatUtc(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}
