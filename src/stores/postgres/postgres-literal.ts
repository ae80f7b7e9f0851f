/** Statements that are sent together cannot have parameters, so their values are written as literals. */
export function literal(value: string | number): string {
  if (typeof value === "number") return String(Math.round(value));
  return `'${value.replaceAll("\0", "").replaceAll("'", "''")}'`;
}

/** The key of a budget or the name of a record. PostgreSQL stores neither NUL characters nor lone surrogates. */
export function storableKey(key: string): string {
  return key.replaceAll("\0", "").toWellFormed();
}

/** Microseconds of the clock of the server. */
export const CLOCK_US = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
