/** What a file is, judged by its bytes: neither its name nor what a server says of it counts. */

/** What may be wanted: the names of files end in it. */
export const TARGET_FORMATS = ["owl", "obo", "json", "ttl", "ofn", "jsonld"] as const;
export type TargetFormat = (typeof TARGET_FORMATS)[number];

/** What bytes can turn out to be. */
export type OntologyFileFormat = "rdf-xml" | "owl-xml" | "obo" | "obographs" | "turtle" | "functional" | "json-ld";

/** What bytes can turn out to be instead. */
export type WrongContent = "html" | "xml-listing" | "json-error" | "empty" | "binary" | "text";

export type Packing = "gzip" | "zip";

export type DetectedContent =
  | { readonly kind: "ontology"; readonly format: OntologyFileFormat }
  | { readonly kind: "packed"; readonly packing: Packing }
  | { readonly kind: "trap"; readonly trap: WrongContent };

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

/** What kind of target a file of this format is, and how its name ends. */
export function targetFormatOf(format: OntologyFileFormat): TargetFormat {
  return TARGET_FORMAT_OF[format];
}

/** What a name promises; `.gz` and `.zip` behind it are looked through. */
export function formatOfName(name: string): TargetFormat | undefined {
  const [, extension = ""] = /\.([a-z0-9]+)(?:\.(?:gz|zip))?$/i.exec(name) ?? [];
  return EXTENSIONS[extension.toLowerCase()];
}

/** How many bytes from the beginning `detect` needs at the most. */
export const DETECT_BYTES = 8192;

/** By the first bytes of a file. */
export function detect(head: Uint8Array): DetectedContent {
  if (head[0] === 0x1f && head[1] === 0x8b) return { kind: "packed", packing: "gzip" };
  if (head[0] === 0x50 && head[1] === 0x4b && (head[2] === 3 || head[2] === 5))
    return { kind: "packed", packing: "zip" };
  const bytes = head.subarray(0, DETECT_BYTES);
  if (bytes.includes(0)) return trap("binary");
  const text = new TextDecoder("utf-8", { ignoreBOM: false }).decode(bytes).trimStart();
  if (text === "") return trap("empty");
  if (text.startsWith("<")) return detectMarkup(text);
  if (text.startsWith("{") || text.startsWith("[")) return detectJson(text);
  return detectPlain(text);
}

function detectMarkup(text: string): DetectedContent {
  const body = withoutProlog(text);
  if (/^<!doctype\s+html|^<(?:html|head|body|script|meta)\b/i.test(body)) return trap("html");
  if (/^<(?:ListBucketResult|Error)\b/.test(body)) return trap("xml-listing");
  if (/^<(?:\w+:)?RDF\b/.test(body)) return ontology("rdf-xml");
  if (/^<(?:\w+:)?Ontology\b/.test(body)) return ontology("owl-xml");
  // Turtle may begin with an IRI.
  if (/^<[^\s<>"]*>\s+(?:a\b|<|\w*:)/.test(body)) return ontology("turtle");
  return trap(/<(?:html|title|body)\b/i.test(body) ? "html" : "text");
}

/** Past the declaration, comments, and a document type with the entities that OWL files declare in it. */
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
  return trap(/"(?:error|errors|message|status)"\s*:/.test(text) ? "json-error" : "text");
}

function detectPlain(text: string): DetectedContent {
  const lines = text.split(/\r?\n/).map(line => line.trim());
  const first = lines.find(line => line !== "" && !line.startsWith("#") && !line.startsWith("!")) ?? "";
  if (/^(?:format-version|data-version|ontology|\[Term\])\s*(?::|$)/.test(first)) return ontology("obo");
  if (/^(?:Prefix|Ontology)\s*\(/.test(first)) return ontology("functional");
  if (/^(?:@prefix|@base)\s|^(?:PREFIX|BASE)\s/i.test(first) || /^(?:<[^\s<>"]*>|_:\w+|\w*:\w*)\s+\S/.test(first)) {
    return ontology("turtle");
  }
  // Nothing but comments so far: they are Turtle's.
  if (first === "" && text.startsWith("#")) return ontology("turtle");
  return trap("text");
}

function ontology(format: OntologyFileFormat): DetectedContent {
  return { kind: "ontology", format };
}

function trap(which: WrongContent): DetectedContent {
  return { kind: "trap", trap: which };
}

const WRONG_CONTENT_TEXTS: Readonly<Record<WrongContent, string>> = {
  html: "a web page",
  "xml-listing": "a listing or an error of a file server",
  "json-error": "an error message",
  empty: "nothing",
  binary: "bytes of no known format",
  text: "text of no known format",
};

/** For messages: `it is a web page`. */
export function describeWrongContent(which: WrongContent): string {
  return WRONG_CONTENT_TEXTS[which];
}
