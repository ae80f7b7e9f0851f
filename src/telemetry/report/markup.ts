/** Escaped HTML. Made by `html`. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Content = Markup | string | number | undefined | readonly Content[];

/** A template tag that escapes strings and inserts `Markup` as it is. */
export function html(strings: TemplateStringsArray, ...contents: readonly Content[]): Markup {
  return new Markup(strings.reduce((text, piece, index) => `${text}${rendered(contents[index - 1])}${piece}`));
}

function rendered(content: Content): string {
  if (content === undefined) return "";
  if (content instanceof Markup) return content.text;
  if (Array.isArray(content)) return content.map(rendered).join("");
  return escaped(String(content));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Replaces control and direction characters too: they could make one host name look like another. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] ?? "").replace(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu, "·");
}
