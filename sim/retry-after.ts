import type { RetryAfterForm } from "./plan.ts";

/** The headers of a throttled response, and the delay they mean. */
export interface RetryAfterHeaders {
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** The delay for a client with this wall clock; undefined when the field is absent or invalid. */
  readonly effectiveMs: (clientWallUs: number) => number | undefined;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HUGE_S = 10_000_000;

export function retryAfterHeaders(form: RetryAfterForm, seconds: number, wallMs: number): RetryAfterHeaders {
  const date = new Date(wallMs).toUTCString();
  const nowMs = Math.floor(wallMs / 1000) * 1000;
  const until = new Date(nowMs + seconds * 1000);
  const plain = (value: string | string[], effectiveMs: number | undefined): RetryAfterHeaders => ({
    headers: { "retry-after": value, date },
    effectiveMs: () => effectiveMs,
  });
  switch (form) {
    case "seconds":
      return plain(String(seconds), seconds * 1000);
    case "fraction":
      return plain(`${seconds}.25`, seconds * 1000 + 250);
    case "date":
      return plain(until.toUTCString(), seconds * 1000);
    case "rfc850":
      return plain(rfc850(until), seconds * 1000);
    case "asctime":
      return plain(asctime(until), seconds * 1000);
    case "twice":
      return plain([String(seconds), "1"], seconds * 1000);
    case "date-alone":
      return {
        headers: { "retry-after": until.toUTCString() },
        effectiveMs: clientUs => {
          const leftUs = until.getTime() * 1000 - clientUs;
          return leftUs > 0 ? leftUs / 1000 : undefined;
        },
      };
    case "zero":
      return plain("0", undefined);
    case "past":
      return plain(new Date(nowMs - seconds * 1000).toUTCString(), undefined);
    case "negative":
      return plain(`-${seconds}`, undefined);
    case "junk":
      return plain("in a while", undefined);
    case "huge":
      return plain(String(HUGE_S), HUGE_S * 1000);
    case "none":
      return { headers: { date }, effectiveMs: () => undefined };
  }
}

function rfc850(date: Date): string {
  const day = DAYS[date.getUTCDay()];
  return `${day}, ${two(date.getUTCDate())}-${MONTHS[date.getUTCMonth()]}-${two(date.getUTCFullYear() % 100)} ${clock(date)} GMT`;
}

function asctime(date: Date): string {
  const day = DAYS[date.getUTCDay()]?.slice(0, 3);
  const dayOfMonth = String(date.getUTCDate()).padStart(2);
  return `${day} ${MONTHS[date.getUTCMonth()]} ${dayOfMonth} ${clock(date)} ${date.getUTCFullYear()}`;
}

function clock(date: Date): string {
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
