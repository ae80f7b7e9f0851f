export { formatWait } from "../../core/text/duration.ts";

/** An instant in UTC, to the second. */
export function formatUtc(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}
