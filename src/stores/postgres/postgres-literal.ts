/** Statements that are sent together cannot have parameters, so their values are written as literals. */
export function literal(value: string | number): string {
  if (typeof value === "number") return String(Math.round(value));
  return `'${value.replaceAll("\0", "").replaceAll("'", "''")}'`;
}

/** Microseconds of the clock of the server. */
export const CLOCK_US = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
