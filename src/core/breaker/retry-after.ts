import { parseHttpDate } from "../text/http-date.ts";

/** The clocks that an HTTP date in `Retry-After` is compared with. */
export interface DateReference {
  /** `Date` of the same response. Preferred, because it is consistent with the server's own clock. */
  readonly responseDate?: string | undefined;
  /** Wall clock of this process in epoch milliseconds, for a response without a valid `Date`. */
  readonly wallMs: number;
}

/** No valid value is longer; the cap bounds the work that a hostile value can cause. */
const VALUE_CHARS_MAX = 256;

/**
 * The delay of a `Retry-After` field in whole milliseconds above 0. The longest of several values wins.
 *
 * Undefined for a field that is absent, zero, negative, in the past or invalid. `Retry-After: 0` counts as absent,
 * because a server in trouble does not want an immediate retry. The caller checks the status (Zenodo sends the field
 * with a 200) and applies a cap (`retry_after_cap_s`).
 */
export function parseRetryAfterMs(
  value: string | readonly string[] | undefined,
  at: DateReference,
): number | undefined {
  if (value === undefined) return undefined;
  let longestMs = 0;
  for (const line of typeof value === "string" ? [value] : value) {
    if (line.length > VALUE_CHARS_MAX) continue;
    for (const text of candidateValues(line)) longestMs = Math.max(longestMs, delayMs(text, at) ?? 0);
  }
  return longestMs > 0 ? Math.min(longestMs, Number.MAX_SAFE_INTEGER) : undefined;
}

/**
 * `Headers` joins repeated fields with a comma, and a date contains a comma: so each piece is tried alone and
 * together with the next one.
 */
function candidateValues(line: string): readonly string[] {
  const pieces = line.split(",");
  return pieces.flatMap((piece, index) => [piece.trim(), `${piece},${pieces[index + 1] ?? ""}`.trim()]);
}

function delayMs(text: string, at: DateReference): number | undefined {
  const seconds = /^(\d+)(?:\.(\d+))?$/.exec(text);
  if (seconds !== null) return secondsToMs(seconds[1] ?? "", seconds[2] ?? "");

  const nowMs = parseHttpDate(at.responseDate?.trim() ?? "", at.wallMs) ?? at.wallMs;
  const untilMs = parseHttpDate(text, nowMs);
  return untilMs !== undefined && untilMs > nowMs ? Math.ceil(untilMs - nowMs) : undefined;
}

/** By digits, because a product such as 1.1 * 1000 is not exact. A remainder rounds up, so that no retry is early. */
function secondsToMs(whole: string, fraction: string): number {
  const remainderMs = /[1-9]/.test(fraction.slice(3)) ? 1 : 0;
  return Number(whole) * 1000 + Number(fraction.slice(0, 3).padEnd(3, "0")) + remainderMs;
}
