/** The sentences of a Markdown text, to count their words. */

/** A sentence, and how many words it has. */
export interface Sentence {
  readonly text: string;
  readonly words: number;
}

/**
 * The sentences of the prose: paragraphs and list items, without code blocks, tables, headings and comments. Code in a
 * line is one word. A colon or a semicolon ends no sentence.
 */
export function sentencesOf(markdown: string): readonly Sentence[] {
  const prose = markdown
    .replace(/^```[\s\S]*?^\s*```$/gm, "\n")
    .replace(/^ +```[\s\S]*?^ +```$/gm, "\n")
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/^\s*\|.*$/gm, "\n")
    .replace(/^#.*$/gm, "\n")
    .replace(/!\[[^\]]*\]\([^)]*\)/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/`[^`]*`/g, "Code")
    .replace(/\*\*|__/g, "");
  const blocks = prose.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[A-Z])/);
  return blocks.flatMap(block =>
    block
      .replace(/^\s*(?:[-*]|\d+\.) /, "")
      .replace(/\s+/g, " ")
      .split(/(?<=[.!?])["')]?\s+(?=[A-Z0-9"(]|docstokg|ontofetch|axios)/)
      .map(text => text.trim())
      .filter(text => text !== "")
      .map(text => ({ text, words: text.split(" ").filter(word => /[\p{L}\p{N}]/u.test(word)).length })),
  );
}
