import { editDistance } from "./edit-distance.ts";

interface KnownName {
  readonly name: string;
  readonly letters: number;
}

/** Names to which a mistyped one is compared. */
export class SimilarNames {
  readonly #known: readonly KnownName[];

  /** @param known in lower case */
  constructor(known: Iterable<string>) {
    this.#known = Array.from(new Set(known), name => ({ name, letters: lettersOf(name) }));
  }

  /**
   * The known name that is one typing error away from this one, or two if the name is long; undefined if there is none.
   * Names that differ only in digits are different on purpose.
   */
  find(name: string): string | undefined {
    const letters = lettersOf(name);
    let most = name.length < LONG_NAME ? 1 : 2;
    let best: string | undefined;
    for (const known of this.#known) {
      if (Math.abs(known.name.length - name.length) > most) continue;
      // A typing error changes at most two bits. This test is a hundred times as fast as the exact one below.
      if (bitsOf(known.letters ^ letters) > 2 * most || withoutDigits(known.name) === withoutDigits(name)) continue;
      const edits = editDistance(name, known.name);
      if (edits > most || edits === 0) continue;
      best = known.name;
      if (edits === 1) return best;
      most = edits - 1;
    }
    return best;
  }
}

const LONG_NAME = 12;

/** One bit for each letter that the name has, and one for digits. */
function lettersOf(name: string): number {
  let letters = 0;
  for (let index = 0; index < name.length; index += 1) {
    const code = name.charCodeAt(index);
    if (code >= 0x61 && code <= 0x7a) letters |= 1 << (code - 0x61);
    else if (code >= 0x30 && code <= 0x39) letters |= 1 << 26;
  }
  return letters;
}

function bitsOf(number: number): number {
  let count = 0;
  for (let rest = number; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

function withoutDigits(name: string): string {
  return name.replace(/\d/g, "");
}
