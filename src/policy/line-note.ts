/** A comment after a value of a YAML file. The spaces can be matched in one way only, so that nothing backtracks. */
const NOTE = /[ \t]*(?:,[ \t]*)?#([^\r\n]*)/y;

/** The comment on the line of a value, without `#`. @param end where the value ends */
export function noteAfter(text: string, end: number): string | undefined {
  NOTE.lastIndex = end;
  return NOTE.exec(text)?.[1]?.trim() || undefined;
}
