/**
 * Which parsers to try for a file, in which order. A parser must accept the whole file, so that a wrong guess is
 * corrected by the next one. A file that begins with `<?` or `<!` is tried only as XML.
 */
import { afterProlog } from "../../core/text/markup-prolog.ts";
import type { OntologyFileFormat, WrongContent } from "../format.ts";
import type { FileParser } from "./file-parser.ts";
import type { OnStatement } from "./statement.ts";

/** `xml` and `json` decide themselves which format they read. `trig` also reads Turtle. */
export type ParserName =
  | "xml"
  | "json"
  | "trig"
  | "turtle"
  | "n-triples"
  | "n-quads"
  | "obo"
  | "functional"
  | "manchester";

/** How much of the beginning `parsersFor` and `wrongContentOf` look at. */
export const HEAD_BYTES = 65_536;

/** The only parser of the Turtle family that may read a file with this claim. */
const PARSERS_BY_CLAIM: Readonly<Partial<Record<OntologyFileFormat, readonly ParserName[]>>> = {
  turtle: ["turtle"],
  trig: ["trig"],
  "n-triples": ["n-triples"],
  "n-quads": ["n-quads"],
};

/** The parser that reads all files of a format. A taxonomy package has no parser of its own. */
export const PARSER_OF_FORMAT: Readonly<Partial<Record<OntologyFileFormat, ParserName>>> = {
  "rdf-xml": "xml",
  "owl-xml": "xml",
  obo: "obo",
  obographs: "json",
  "json-ld": "json",
  turtle: "trig",
  trig: "trig",
  "n-triples": "n-triples",
  "n-quads": "n-quads",
  functional: "functional",
  manchester: "manchester",
};

/** @param claim see `claimedFormat`. */
export function parsersFor(head: string, claim: OntologyFileFormat | undefined): readonly ParserName[] {
  const turtleParsers = (claim === undefined ? undefined : PARSERS_BY_CLAIM[claim]) ?? ["trig", "n-quads"];
  const text = withoutComments(head);
  const order = orderFor(text, turtleParsers);
  if (/^<[?!]/.test(text)) return order;
  const others: readonly ParserName[] = text.startsWith("<") ? [] : ["obo", "functional", "manchester"];
  return [...new Set([...order, ...turtleParsers, ...others])];
}

function orderFor(text: string, turtleParsers: readonly ParserName[]): readonly ParserName[] {
  if (text.startsWith("<")) return isIri(text) ? turtleParsers : ["xml"];
  if (text.startsWith("{")) return /^\{\s?["}]|^\{\s+["}]/.test(text) ? ["json"] : turtleParsers;
  if (text.startsWith("[")) {
    if (/^\[[A-Za-z]{1,40}\]/.test(text)) return ["obo"];
    return /^\[\s*[{"\d]/.test(text) ? ["json"] : [...turtleParsers, "json"];
  }
  if (/^(?:Prefix|Ontology)\s{0,20}\(/.test(text)) return ["functional"];
  if (/^(?:Prefix|Namespace|Ontology|Import|[A-Z][a-z]{2,20}(?:Property|Classes)?|Class|Individual):\s/.test(text)) {
    return ["manchester"];
  }
  return /^[A-Za-z][\w-]{0,60}:(?:\s|$)/.test(text) ? ["obo"] : turtleParsers;
}

/** Whether `<...` is an IRI. A tag contains a space, or no slash and no number sign. */
function isIri(text: string): boolean {
  const end = text.indexOf(">");
  const inside = text.slice(1, end < 0 ? 200 : Math.min(end, 2000));
  if (/^[?!]|\s/.test(inside)) return false;
  return /[/#]/.test(inside.endsWith("/") ? inside.slice(0, -1) : inside) || text.startsWith("<<");
}

function withoutComments(head: string): string {
  let at = 0;
  for (;;) {
    while (/\s/.test(head.charAt(at))) at += 1;
    const letter = head.charAt(at);
    if (letter !== "#" && letter !== "!") return head.slice(at);
    const end = head.indexOf("\n", at);
    if (end < 0) return "";
    at = end + 1;
  }
}

/** The parsers whose statements are complete only when they read a file for the second time. */
export const TWO_PASS_PARSERS: ReadonlySet<ParserName> = new Set(["obo"]);

/**
 * Each parser is imported on first use, because most programs need none of them.
 * @param earlier the parser of this name that has read the same file before
 */
export async function openParser(
  name: ParserName,
  onStatement: OnStatement,
  base: string,
  earlier?: FileParser,
): Promise<FileParser> {
  switch (name) {
    case "xml":
      return new (await import("./xml-file-parser.ts")).XmlFileParser(onStatement, base);
    case "json":
      return new (await import("./json-file-parser.ts")).JsonFileParser(onStatement, base);
    case "obo":
      return new (await import("./obo-parser.ts")).OboParser(onStatement, earlier?.shorthands);
    case "functional":
      return new (await import("./functional-parser.ts")).FunctionalParser(onStatement, base);
    case "manchester":
      return new (await import("./manchester-parser.ts")).ManchesterParser(onStatement, base);
    default:
      return new (await import("./turtle-parser.ts")).TurtleParser(name, onStatement, base);
  }
}

/** The kind of a file that no parser accepts; undefined if it may be a damaged ontology. */
export function wrongContentOf(head: string): WrongContent | undefined {
  const text = head.trimStart();
  if (text === "") return "empty";
  if (text.startsWith("<")) return wrongMarkup(text);
  if (text.startsWith("{") || text.startsWith("[")) {
    if (/"(?:graphs|@context|@graph|@id|@type)"\s?:/.test(text) || !/^[[{]\s*["{}\]]/.test(text)) return undefined;
    return isErrorMessage(text) ? "json-error" : "text";
  }
  return undefined;
}

/** Whether a JSON text looks like the error message of a service. */
export function isErrorMessage(text: string): boolean {
  return /"(?:error|errors|message|status|detail)"\s?:|"[@\w:]{0,40}Error"/.test(text);
}

function wrongMarkup(text: string): WrongContent | undefined {
  if (/^<!doctype\s{1,20}html/i.test(text)) return "html";
  const [, tag = ""] = /^<([A-Za-z][\w:.-]{0,60})/.exec(text.slice(afterProlog(text))) ?? [];
  if (/^(?:html|head|body|script|meta|title|div|p|h1)$/i.test(tag)) return "html";
  if (/^(?:ListBucketResult|Error)$/.test(tag)) return "xml-listing";
  return undefined;
}
