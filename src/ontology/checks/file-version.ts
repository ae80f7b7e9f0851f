import type { OntologyFileFormat } from "../format.ts";

/** How many bytes are searched for the version. The header is at the beginning of the file, but can be long. */
export const VERSION_BYTES = 1_048_576;
const LABEL_MAX = 64;

/** The version that a file states. */
export interface FileVersion {
  /** As written in the file: an IRI, `releases/2026-11-01`, `v3.93.0`. */
  readonly raw: string;
  /** The short form, see `labelOf`. */
  readonly label: string;
}

/** The version in the beginning of a file; undefined if it states none. */
export function versionOf(format: OntologyFileFormat, head: string): FileVersion | undefined {
  const raw = READERS[format](head)?.trim().slice(0, 512);
  return raw === undefined || raw === "" ? undefined : { raw, label: labelOf(raw) };
}

/** The date in the text; without a date the last path segment of an IRI that is not a file name, or the text itself. */
export function labelOf(raw: string): string {
  const [date] = /\d{4}-\d{2}-\d{2}/.exec(raw) ?? [];
  if (date !== undefined) return date;
  if (!/^https?:\/\//.test(raw) && !raw.includes("/")) return raw.slice(0, LABEL_MAX);
  const parts =
    raw
      .split(/[?#]/, 1)[0]
      ?.split("/")
      .filter(part => part !== "") ?? [];
  if (/\.(?:owl|obo|json|ttl|rdf|ofn|xml)$/i.test(parts.at(-1) ?? "")) parts.pop();
  return (parts.at(-1) ?? raw).slice(0, LABEL_MAX);
}

/**
 * A safe folder name. The label comes from the network, so every character except letters, digits and `._+-` is
 * replaced, and the name does not begin or end with a dot.
 */
export function folderOf(label: string): string {
  const plain = label
    .replace(/[^A-Za-z0-9._+-]+/g, "_")
    .replace(/^[._]+|[._]+$/g, "")
    .slice(0, LABEL_MAX);
  return plain === "" ? "unnamed" : plain;
}

type VersionReader = (head: string) => string | undefined;

const first =
  (pattern: RegExp): VersionReader =>
  head =>
    pattern
      .exec(head)
      ?.slice(1)
      .find(group => group !== undefined);
const either =
  (...readers: readonly VersionReader[]): VersionReader =>
  head => {
    for (const read of readers) {
      const found = read(head);
      if (found !== undefined) return found;
    }
    return undefined;
  };

const READERS: Readonly<Record<OntologyFileFormat, VersionReader>> = {
  "rdf-xml": head =>
    unescaped(
      either(
        first(/<owl:versionIRI\s[^>]*?rdf:resource\s*=\s*(?:"([^"]+)"|'([^']+)')/),
        first(/<owl:versionInfo[^>]*>([^<]+)</),
        first(/owl:versionInfo\s*=\s*"([^"]+)"/),
      )(head),
      head,
    ),
  "owl-xml": head => unescaped(first(/<(?:\w+:)?Ontology\s[^>]*?versionIRI\s*=\s*(?:"([^"]+)"|'([^']+)')/)(head), head),
  obo: first(/^data-version:\s*(\S.*)$/m),
  // Only the text before "nodes": the metadata of a node can contain a version too.
  obographs: head => first(/"version"\s*:\s*"([^"]+)"/)(head.split('"nodes"', 1)[0] ?? ""),
  "json-ld": first(/"(?:owl:versionIRI|owl:versionInfo|[^"]*#versionIRI)"\s*:\s*(?:\{\s*"@id"\s*:\s*)?"([^"]+)"/),
  turtle: either(
    first(/owl:versionIRI\s+<([^>]+)>/),
    first(/<http:\/\/www\.w3\.org\/2002\/07\/owl#versionIRI>\s+<([^>]+)>/),
    first(/owl:versionInfo\s+"""?([^"]+)"/),
    first(/owl:versionInfo\s+"([^"]+)"/),
    first(/<http:\/\/www\.w3\.org\/2002\/07\/owl#versionInfo>\s+"([^"]+)"/),
  ),
  functional: first(/\bOntology\s*\(\s*<[^>]*>\s*<([^>]+)>/),
};

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/**
 * Replaces XML entities, also those that the file declares. The result is not expanded again, so it cannot grow without
 * end.
 */
function unescaped(text: string | undefined, head: string): string | undefined {
  return text?.replace(/&([\w.-]{1,64});/g, (whole, name: string) => {
    const named = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined;
    return named ?? new RegExp(`<!ENTITY\\s+${name.replace(/\./g, "\\.")}\\s+"([^"]*)"`).exec(head)?.[1] ?? whole;
  });
}
