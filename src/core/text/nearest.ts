import { editDistance } from "./edit-distance.ts";

/** The candidate closest to a mistyped word, for "did you mean"; undefined when none is close enough. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  // At most a third of the letters may differ; a looser bound would suggest unrelated words.
  let bound = Math.min(4, Math.floor(word.length / 3) + 1);
  let best: string | undefined;
  if (word.length > MAX_LENGTH) return undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bound) continue;
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (edits >= bound) continue;
    bound = edits;
    best = candidate;
  }
  return best;
}

/** What to try instead of an unknown option: the nearest one, or else any of them. */
export function optionHint(option: string, known: readonly string[]): string {
  const meant = nearest(option, known);
  return meant === undefined ? `the options are ${known.join(", ")}` : `did you mean ${meant}?`;
}

/** The work grows with the product of the lengths, and no valid word is this long. */
const MAX_LENGTH = 64;
