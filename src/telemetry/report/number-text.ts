/** Formats numbers for the terminal and for the HTML report. */

export function countOf(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function percentOf(share: number): string {
  const percent = share * 100;
  const rounded = Number(percent.toFixed(percent >= 9.95 ? 0 : percent >= 0.995 ? 1 : 2));
  if (rounded === 0 && percent > 0) return "< 0.01 %";
  if (rounded === 100 && percent < 100) return "> 99 %";
  return `${rounded} %`;
}

/** `12 per minute`; `3.5 per hour` if it is less than one per minute. */
export function rateOf(count: number, durationMs: number): string {
  const perHour = durationMs > 0 ? (count * 3_600_000) / durationMs : 0;
  return perHour >= 60 ? `${countOf(perHour / 60)} per minute` : `${perHourText(perHour)} per hour`;
}

export function perHourText(perHour: number): string {
  return perHour < 9.95 ? String(Number(perHour.toFixed(1))) : countOf(perHour);
}

/** `0 ms`, `340 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function durationOf(ms: number): string {
  if (ms < 999.5) return `${ms > 0 && ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;
  if (ms < 59_500) return `${Number((ms / 1000).toFixed(ms < 9950 ? 1 : 0))} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return joined(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return joined(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(minutes / 60);
  return joined(Math.floor(hours / 24), "d", hours % 24, "h");
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** `2026-11-16 02:10:00`, always UTC. */
export function momentOf(ms: number): string {
  return isoOf(ms).slice(0, 19).replace("T", " ");
}

/** A UTC time with the precision that steps of this length need. */
export function clockOf(ms: number, stepMs: number): string {
  const iso = isoOf(ms);
  if (stepMs >= 86_400_000) return iso.slice(0, 10);
  if (stepMs >= 60_000) return iso.slice(11, 16);
  return stepMs >= 1000 ? iso.slice(11, 19) : iso.slice(11, 23);
}

/** Clamped, because a file may contain any number and toISOString throws for one out of range. */
function isoOf(ms: number): string {
  return new Date(Math.min(8.64e15, Math.max(-8.64e15, ms))).toISOString();
}

/** Replaces control characters in text from a file: a host name could otherwise contain terminal commands. */
export function plainText(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "·");
}
