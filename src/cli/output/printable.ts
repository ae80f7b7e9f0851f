/** Replaces control characters: text from a store, a file or a server may contain them, and a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, "\u{fffd}");
}
