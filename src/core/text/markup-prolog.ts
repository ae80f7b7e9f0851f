/**
 * The index of the first character of a markup text that is neither white space nor part of a comment or processing
 * instruction. Without regular expressions that repeat a group: on hostile texts they would take forever.
 */
export function afterComments(text: string, from = 0): number {
  const lastMark = text.lastIndexOf("?>");
  let at = from;
  for (;;) {
    while (/\s/.test(text.charAt(at))) at += 1;
    // Some servers forget the question mark at the end of an instruction.
    const end = text.startsWith("<!--", at)
      ? after(text, "-->", at + 4)
      : text.startsWith("<?", at)
        ? after(text, lastMark < at ? ">" : "?>", at)
        : -1;
    if (end < 0) return at;
    at = end;
  }
}

/** As `afterComments`, and after the document type, if there is one. */
export function afterProlog(text: string, from = 0): number {
  const at = afterComments(text, from);
  if (!/^<!doctype\b/i.test(text.slice(at, at + 10))) return at;
  const subset = text.indexOf("[", at);
  const close = text.indexOf(">", at);
  const end = subset >= 0 && subset < close ? after(text, "]>", subset) : close + 1;
  return end <= 0 ? at : afterComments(text, end);
}

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? -1 : at + mark.length;
}
