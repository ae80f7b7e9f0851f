import type { OntologyFileFormat } from "../format.ts";

/** How much of a file is read for its version: the header of an ontology is long at times, and always in front. */
export const VERSION_BYTES = 1_048_576;
const LABEL_MAX = 64;

/** What a file says of itself. */
export interface FileVersion {
  /** As it stands there: an IRI, `releases/2026-11-01`, `v3.93.0`. */
  readonly raw: string;
  /** The part of it that people call the version. */
  readonly label: string;
}

/** The version that the head of a file names; undefined when it names none. */
export function versionOf(format: OntologyFileFormat, head: string): FileVersion | undefined {
  const raw = READERS[format](head)?.trim().slice(0, 512);
  return raw === undefined || raw === "" ? undefined : { raw, label: labelOf(raw) };
}

/** A date where there is one, the telling part of an IRI, or the text itself. */
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
 * A name for a folder. What comes from the network never becomes a path: whatever is not plain is replaced, and nothing
 * that means something to a file system is left.
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
  // In front of the nodes, whose own meta may speak of versions too.
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

/** Entities that OWL files declare for their namespaces, once each: nothing is expanded twice. */
function unescaped(text: string | undefined, head: string): string | undefined {
  return text?.replace(/&([\w.-]{1,64});/g, (whole, name: string) => {
    const named = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined;
    return named ?? new RegExp(`<!ENTITY\\s+${name.replace(/\./g, "\\.")}\\s+"([^"]*)"`).exec(head)?.[1] ?? whole;
  });
}
