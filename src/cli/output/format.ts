const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `34.1 MB`; `?` for an unknown size. */
export function formatBytes(bytes: number | undefined): string {
  if (bytes === undefined) return "?";
  let value = bytes;
  let unit = 0;
  // 999.5 kB would be rounded to "1000 kB".
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** `1 file`, `2 files`. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
