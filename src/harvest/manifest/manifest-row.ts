/** A row of either backend, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A column of text; undefined for NULL. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Why a manifest cannot be read in which another program has changed a record. */
export const INVALID_JSON = "a record of a work is not valid JSON";
