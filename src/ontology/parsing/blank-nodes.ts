/**
 * Labels of blank nodes. Labels of the file and generated labels begin with different letters: `_:b1` is generated,
 * `_:nb1` is `_:b1` of the file.
 */

/** The blank node of an ontology without an IRI. */
export const ONTOLOGY_NODE = "_:ontology";

/** Labels that need no escape in N-Triples, unless they end with a dot. */
const PLAIN = /^[\w.-]*$/;

/** Generates the labels of blank nodes that have none in the file. */
export class BlankNodes {
  #count = 0;

  next(): string {
    this.#count += 1;
    return `_:b${this.#count}`;
  }
}

/** The blank node of a label in the file, without `_:`. Two labels never give the same blank node. */
export function blankNodeOf(label: string): string {
  if (PLAIN.test(label) && !label.endsWith(".")) return `_:n${label}`;
  return `_:x${label.replace(/[^A-Za-z0-9]/gu, letter => `_${letter.codePointAt(0)?.toString(16)}_`)}`;
}

/** The node that an expanded text of the file names: a blank node if it begins with `_:`, else the IRI itself. */
export function nodeOf(text: string): string {
  return text.startsWith("_:") ? blankNodeOf(text.slice(2)) : text;
}
