/** Numbers and times as texts. */

const counts = new Intl.NumberFormat("en");

export function count(value: number): string {
  return counts.format(value);
}

/** A rate per second: `0`, `0.4`, `12`. */
export function perSecond(value: number): string {
  if (value === 0) return "0";
  return value < 10 ? String(Number(value.toFixed(1))) : count(Math.round(value));
}

/** `340 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 days`. */
export function duration(ms: number): string {
  // Rounded before the parts are split, so that there are never 60 seconds beside minutes.
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 100) return `${(tenths / 10).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} days`;
}

/** Time left, in whole seconds, so that it does not flicker. */
export function timeLeft(untilMs: number, nowMs: number): string {
  const ms = untilMs - nowMs;
  return ms <= 0 ? "now" : duration(Math.max(1000, Math.ceil(ms / 1000) * 1000)).replace(".0 s", " s");
}

export function clock(atMs: number): string {
  const date = new Date(atMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(part => String(part).padStart(2, "0")).join(":");
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let amount = value;
  let unit = 0;
  // From 999.5 it would be rounded to 1000.
  while (amount >= (unit === 0 ? 1000 : 999.5) && unit < units.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  return `${amount >= 100 || unit === 0 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`;
}

export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
