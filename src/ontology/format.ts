/** Detects the format of a file by its bytes, because names and `Content-Type` are often wrong. */

/** A value of `target_formats`, which is also the extension of a stored file. */
export type TargetFormat = "owl" | "obo" | "json" | "ttl" | "ofn" | "jsonld";

export const TARGET_FORMATS = ["owl", "obo", "json", "ttl", "ofn", "jsonld"] as const satisfies readonly TargetFormat[];

/** A format that `detect` recognises. */
export type OntologyFileFormat = "rdf-xml" | "owl-xml" | "obo" | "obographs" | "turtle" | "functional" | "json-ld";

/** Content that is not an ontology. */
export type WrongContent = "html" | "xml-listing" | "json-error" | "empty" | "binary" | "text";

export type Packing = "gzip" | "zip";

export type DetectedContent =
  | { readonly kind: "ontology"; readonly format: OntologyFileFormat }
  | { readonly kind: "packed"; readonly packing: Packing }
  | { readonly kind: "wrong-content"; readonly content: WrongContent };

const TARGET_FORMAT_OF: Readonly<Record<OntologyFileFormat, TargetFormat>> = {
  "rdf-xml": "owl",
  "owl-xml": "owl",
  obo: "obo",
  obographs: "json",
  turtle: "ttl",
  functional: "ofn",
  "json-ld": "jsonld",
};

const EXTENSIONS: Readonly<Record<string, TargetFormat>> = {
  owl: "owl",
  rdf: "owl",
  xml: "owl",
  owx: "owl",
  obo: "obo",
  json: "json",
  ttl: "ttl",
  n3: "ttl",
  nt: "ttl",
  ofn: "ofn",
  jsonld: "jsonld",
};

/** The target format that a file of this format satisfies; also its extension in the store. */
export function targetFormatOf(format: OntologyFileFormat): TargetFormat {
  return TARGET_FORMAT_OF[format];
}

/** The format that a file name suggests. A `.gz` or `.zip` at the end is ignored. */
export function formatOfName(name: string): TargetFormat | undefined {
  const [, extension = ""] = /\.([a-z0-9]+)(?:\.(?:gz|zip))?$/i.exec(name) ?? [];
  return EXTENSIONS[extension.toLowerCase()];
}

/** How many bytes of the beginning `detect` reads at most. */
export const DETECT_BYTES = 8192;

export function detect(head: Uint8Array): DetectedContent {
  if (head[0] === 0x1f && head[1] === 0x8b) return { kind: "packed", packing: "gzip" };
  if (head[0] === 0x50 && head[1] === 0x4b && (head[2] === 3 || head[2] === 5))
    return { kind: "packed", packing: "zip" };
  const bytes = head.subarray(0, DETECT_BYTES);
  if (bytes.includes(0)) return wrongContent("binary");
  const text = new TextDecoder("utf-8", { ignoreBOM: false }).decode(bytes).trimStart();
  if (text === "") return wrongContent("empty");
  if (text.startsWith("<")) return detectMarkup(text);
  if (text.startsWith("{") || text.startsWith("[")) return detectJson(text);
  return detectPlain(text);
}

function detectMarkup(text: string): DetectedContent {
  const body = withoutProlog(text);
  if (/^<!doctype\s+html|^<(?:html|head|body|script|meta)\b/i.test(body)) return wrongContent("html");
  if (/^<(?:ListBucketResult|Error)\b/.test(body)) return wrongContent("xml-listing");
  if (/^<(?:\w+:)?RDF\b/.test(body)) return ontology("rdf-xml");
  if (/^<(?:\w+:)?Ontology\b/.test(body)) return ontology("owl-xml");
  // Turtle may begin with an IRI.
  if (/^<[^\s<>"]*>\s+(?:a\b|<|\w*:)/.test(body)) return ontology("turtle");
  return wrongContent(/<(?:html|title|body)\b/i.test(body) ? "html" : "text");
}

/** The text after the XML declaration, comments and document type. OWL files declare entities in the document type. */
function withoutProlog(text: string): string {
  let rest = text;
  for (;;) {
    const next = rest.replace(
      /^(?:<\?[^>]*\?>|<!--[\s\S]*?-->|<!DOCTYPE\s+(?!html\b)[^[>]*(?:\[[\s\S]*?\]\s*)?>)\s*/i,
      "",
    );
    if (next === rest) return rest;
    rest = next;
  }
}

function detectJson(text: string): DetectedContent {
  if (/"graphs"\s*:/.test(text)) return ontology("obographs");
  if (/"@(?:context|graph|id)"\s*:/.test(text)) return ontology("json-ld");
  return wrongContent(/"(?:error|errors|message|status)"\s*:/.test(text) ? "json-error" : "text");
}

function detectPlain(text: string): DetectedContent {
  const lines = text.split(/\r?\n/).map(line => line.trim());
  const first = lines.find(line => line !== "" && !line.startsWith("#") && !line.startsWith("!")) ?? "";
  if (/^(?:format-version|data-version|ontology|\[Term\])\s*(?::|$)/.test(first)) return ontology("obo");
  if (/^(?:Prefix|Ontology)\s*\(/.test(first)) return ontology("functional");
  if (/^(?:@prefix|@base)\s|^(?:PREFIX|BASE)\s/i.test(first) || /^(?:<[^\s<>"]*>|_:\w+|\w*:\w*)\s+\S/.test(first)) {
    return ontology("turtle");
  }
  // Only comments in the first bytes: of the text formats, only Turtle files begin so.
  if (first === "" && text.startsWith("#")) return ontology("turtle");
  return wrongContent("text");
}

function ontology(format: OntologyFileFormat): DetectedContent {
  return { kind: "ontology", format };
}

function wrongContent(content: WrongContent): DetectedContent {
  return { kind: "wrong-content", content };
}

const WRONG_CONTENT_TEXTS: Readonly<Record<WrongContent, string>> = {
  html: "an HTML page",
  "xml-listing": "an XML listing or error of a file server",
  "json-error": "a JSON error message",
  empty: "empty",
  binary: "binary data of unknown format",
  text: "text of unknown format",
};

/** For messages after "file is". */
export function describeWrongContent(content: WrongContent): string {
  return WRONG_CONTENT_TEXTS[content];
}
