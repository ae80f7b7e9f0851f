/** The formats of ontology files, their names, and the compressions that are unpacked. */

/** A value of `target_formats`, which is also the extension of a stored file. */
export type TargetFormat = "owl" | "obo" | "json" | "ttl" | "ofn" | "jsonld" | "omn" | "nt" | "nq" | "trig" | "zip";

export const TARGET_FORMATS = [
  ...(["owl", "obo", "json", "ttl", "ofn", "jsonld"] as const),
  ...(["omn", "nt", "nq", "trig", "zip"] as const),
] as const satisfies readonly TargetFormat[];

/** A format that the parsers recognise. */
export type OntologyFileFormat =
  | "rdf-xml"
  | "owl-xml"
  | "obo"
  | "obographs"
  | "turtle"
  | "functional"
  | "json-ld"
  | "manchester"
  | "n-triples"
  | "n-quads"
  | "trig"
  | "xbrl-package";

export const FILE_FORMATS = [
  ...(["rdf-xml", "owl-xml", "obo", "obographs", "turtle", "functional", "json-ld"] as const),
  ...(["manchester", "n-triples", "n-quads", "trig", "xbrl-package"] as const),
] as const satisfies readonly OntologyFileFormat[];

/** Content that is not an ontology. */
export type WrongContent = "html" | "xml-listing" | "json-error" | "empty" | "binary" | "text";

/** How a file is compressed, or that it is an archive. */
export type Packing = "gzip" | "zip" | "tar" | "bzip2" | "xz" | "zstd";

const TARGET_FORMAT_OF: Readonly<Record<OntologyFileFormat, TargetFormat>> = {
  "rdf-xml": "owl",
  "owl-xml": "owl",
  obo: "obo",
  obographs: "json",
  turtle: "ttl",
  functional: "ofn",
  "json-ld": "jsonld",
  manchester: "omn",
  "n-triples": "nt",
  "n-quads": "nq",
  trig: "trig",
  "xbrl-package": "zip",
};

const EXTENSIONS: ReadonlyMap<string, TargetFormat> = new Map([
  ...TARGET_FORMATS.map(format => [format, format] as const),
  ...(["rdf", "xml", "owx"] as const).map(extension => [extension, "owl"] as const),
  ["n3", "ttl"],
  ["nquads", "nq"],
  ["ntriples", "nt"],
]);

/** Formats that include another one. Not the content shows which one is meant, but the file name or the media type. */
const CLAIMS: ReadonlyMap<TargetFormat, OntologyFileFormat> = new Map([
  ["nt", "n-triples"],
  ["nq", "n-quads"],
  ["ttl", "turtle"],
  ["trig", "trig"],
]);
const MEDIA_TYPES: ReadonlyMap<string, OntologyFileFormat> = new Map([
  ["application/n-triples", "n-triples"],
  ["application/n-quads", "n-quads"],
]);

/** The target format that a file of this format satisfies; also its extension in the store. */
export function targetFormatOf(format: OntologyFileFormat): TargetFormat {
  return TARGET_FORMAT_OF[format];
}

/** The format that a file name suggests. The extension of a compression at the end, such as `.gz`, is ignored. */
export function formatOfName(name: string): TargetFormat | undefined {
  const parts = name.toLowerCase().split(/[./]/);
  const last = parts.at(-1) ?? "";
  const extension = PACKED_EXTENSIONS.has(last) ? parts.at(-2) : last;
  return parts.length < 2 ? undefined : EXTENSIONS.get(extension ?? "");
}

const PACKED_EXTENSIONS = new Set(["gz", "tgz", "zip", "bz2", "xz", "zst"]);

/**
 * The format that the name or the media type claims, only for formats that include each other: every N-Triples file is
 * also Turtle, and every Turtle file is also TriG. The claim makes the check strict. Other formats are recognised by their
 * content alone.
 */
export function claimedFormat(name: string, mediaType: string | undefined): OntologyFileFormat | undefined {
  const byName = formatOfName(name);
  const [type = ""] = (mediaType ?? "").toLowerCase().split(";", 1);
  return (byName === undefined ? undefined : CLAIMS.get(byName)) ?? MEDIA_TYPES.get(type.trim());
}

/** How many bytes `packingOf` needs. */
export const PACKING_BYTES = 512;

const SIGNATURES: readonly (readonly [Packing, readonly number[], offset: number])[] = [
  ["gzip", [0x1f, 0x8b], 0],
  ["zip", [0x50, 0x4b, 3, 4], 0],
  ["zip", [0x50, 0x4b, 5, 6], 0],
  ["bzip2", [0x42, 0x5a, 0x68], 0],
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0], 0],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd], 0],
  // "ustar" in the first header.
  ["tar", [0x75, 0x73, 0x74, 0x61, 0x72], 257],
];

/** The compression of a file, by its first bytes. */
export function packingOf(head: Uint8Array): Packing | undefined {
  // Some programs, such as pzstd, begin with a frame that decoders skip. The lower half of its first byte varies.
  const [first = 0, ...rest] = head.subarray(0, 4);
  if (first >> 4 === 5 && rest.join() === "42,77,24") return "zstd";
  return SIGNATURES.find(([, bytes, offset]) => bytes.every((byte, index) => head[offset + index] === byte))?.[0];
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
