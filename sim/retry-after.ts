import { SIM_EPOCH_MS } from "./machine.ts";
import type { RetryAfterForm } from "./plan.ts";

/** The fields by which a server asks to be left alone, and for how long it means it. */
export interface RetryAfterHeaders {
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Given the wall clock of who hears it. Undefined when it asks for nothing that counts. */
  readonly meantMs: (clientWallMs: number) => number | undefined;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HUGE_S = 10_000_000;

export function asking(form: RetryAfterForm, seconds: number, wallMs: number): RetryAfterHeaders {
  const date = new Date(wallMs).toUTCString();
  const nowMs = Math.floor(wallMs / 1000) * 1000;
  const until = new Date(nowMs + seconds * 1000);
  const plain = (value: string | string[], meantMs: number | undefined): RetryAfterHeaders => ({
    headers: { "retry-after": value, date },
    meantMs: () => meantMs,
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
        meantMs: clientMs => (until.getTime() > clientMs ? until.getTime() - clientMs : undefined),
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
      return { headers: { date }, meantMs: () => undefined };
  }
}

/** A wall clock of the world that is off by so much. */
export function wallMsAt(nowUs: number, offsetMs: number): number {
  return SIM_EPOCH_MS + Math.floor(nowUs / 1000) + offsetMs;
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
