import { Parser } from "htmlparser2";

export interface MarkupElement {
  readonly name: string;
  /** Name of the parent element. */
  readonly parent: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  /** Without the text of child elements. */
  readonly text: string;
}

const TEXT_CHARS_MAX = 65_536;
/** A deeper element ends the parsing. */
const DEPTH_MAX = 256;

/**
 * Calls `onElement` at the end of each element. In HTML mode, names are in lower case. Never throws.
 * @param maxChars the rest of the markup is ignored
 */
export function eachElement(
  markup: string,
  mode: "html" | "xml",
  maxChars: number,
  onElement: (element: MarkupElement) => void,
): void {
  const open: { name: string; attributes: Record<string, string>; text: string }[] = [];
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        open.push({ name, attributes, text: "" });
        if (open.length > DEPTH_MAX) parser.pause();
      },
      ontext(text) {
        const element = open.at(-1);
        if (element !== undefined && element.text.length < TEXT_CHARS_MAX) element.text += text;
      },
      onclosetag() {
        const element = open.pop();
        if (element !== undefined) onElement({ ...element, parent: open.at(-1)?.name });
      },
    },
    { xmlMode: mode === "xml", decodeEntities: true },
  );
  parser.end(markup.slice(0, maxChars));
}
