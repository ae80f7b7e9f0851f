/** The candidate closest to a mistyped word, for "did you mean"; undefined when none is close enough. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  // At most a third of the letters may differ; a looser bound would suggest unrelated words.
  let bound = Math.min(4, Math.floor(word.length / 3) + 1);
  let best: string | undefined;
  if (word.length > MAX_LENGTH) return undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bound) continue;
    const edits = distance(word.toLowerCase(), candidate.toLowerCase());
    if (edits >= bound) continue;
    bound = edits;
    best = candidate;
  }
  return best;
}

/** The work grows with the product of the lengths, and no valid word is this long. */
const MAX_LENGTH = 64;

/** Levenshtein distance: letters to change, remove or add. */
function distance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const line = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const change = (above[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      line.push(Math.min(change, (above[column] ?? 0) + 1, (line[column - 1] ?? 0) + 1));
    }
    above = line;
  }
  return above[to.length] ?? 0;
}
