import { Parser } from "htmlparser2";

export interface MarkupElement {
  readonly name: string;
  /** The name of the element around it. */
  readonly parent: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  /** Its own, without that of the elements inside. */
  readonly text: string;
}

export interface MarkupLimits {
  /** What comes later is not looked at. */
  readonly chars: number;
  /** An element this deep ends the reading. @default 256 */
  readonly depth?: number | undefined;
}

const TEXT_CHARS_MAX = 65_536;

/** Tells each element when it ends; in HTML as browsers see them, names in lower case. Never throws. */
export function eachElement(
  markup: string,
  mode: "html" | "xml",
  limits: MarkupLimits,
  onElement: (element: MarkupElement) => void,
): void {
  const depthMax = limits.depth ?? 256;
  const open: { name: string; attributes: Record<string, string>; text: string }[] = [];
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        open.push({ name, attributes, text: "" });
        if (open.length > depthMax) parser.pause();
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
  parser.end(markup.slice(0, limits.chars));
}
