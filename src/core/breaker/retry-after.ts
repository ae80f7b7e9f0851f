import { parseHttpDate } from "../text/http-date.ts";

/** What a date in the field is measured against. */
export interface DateReference {
  /** The `Date` of the same response. The server's two clocks agree with each other even when both are wrong. */
  readonly responseDate?: string | undefined;
  /** Our own wall clock, for a response without a usable `Date`. */
  readonly wallMs: number;
}

/** A longer value is nobody's delay; the cap keeps a hostile one from costing time. */
const VALUE_CHARS_MAX = 256;

/**
 * How long a response asks to be left alone, in whole milliseconds above zero.
 *
 * Undefined for what asks for nothing: absent, zero, negative, past, junk. An immediate retry is never what a server
 * in trouble wants, so `Retry-After: 0` must not pass for a permission. Of several values the longest counts.
 * Neither the status nor a cap is looked at here: Zenodo sends the field on a 200, and how much to believe is policy.
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
 * `Headers` joins repeated fields with a comma, and a date has a comma of its own: so each piece is tried alone and
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

/** By digits, because a product such as 1.1 * 1000 may land beside its millisecond. A remainder rounds up: never early. */
function secondsToMs(whole: string, fraction: string): number {
  const remainderMs = /[1-9]/.test(fraction.slice(3)) ? 1 : 0;
  return Number(whole) * 1000 + Number(fraction.slice(0, 3).padEnd(3, "0")) + remainderMs;
}
