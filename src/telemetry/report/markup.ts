/** HTML that was escaped where it had to be. Only `html` makes one. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Content = Markup | string | number | undefined | readonly Content[];

/** A template whose texts are escaped, and whose markup is not. */
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

/** What turns text around, or hides in it, could show one host as another. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] ?? "").replace(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu, "·");
}
