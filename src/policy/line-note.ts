/** The comment behind a value of a YAML file; a comma of a list may stand between them. */
const NOTE = /[ \t]*,?[ \t]*#([^\r\n]*)/y;

/** The comment on the line of a value, without `#`. @param end where the value ends */
export function noteAfter(text: string, end: number): string | undefined {
  NOTE.lastIndex = end;
  return NOTE.exec(text)?.[1]?.trim() || undefined;
}
