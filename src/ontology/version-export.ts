import type { StoredVersion } from "./ontology-store.ts";
import { type OntologyEdge, type OntologyTerm, parseStored, readTerms } from "./ontology-terms.ts";
import { formatTerm } from "./parsing/n-triples-text.ts";
import { SUB_CLASS_OF, SUB_PROPERTY_OF } from "./parsing/rdf-vocabulary.ts";
import { nodeKind } from "./parsing/statement.ts";
import { formatCrate } from "./ro-crate.ts";

export const EXPORT_FORMATS = ["ntriples", "nodes-edges", "obographs", "ro-crate"] as const;
export type VersionExportFormat = (typeof EXPORT_FORMATS)[number];

/** Receives a part of the export. The next part is written when the promise resolves. */
export type WritePart = (text: string) => Promise<void>;

/** How many lines are written together, because single lines would be slow. */
const LINES_PER_WRITE = 1000;

/**
 * Writes a stored version in another format. `ntriples` writes every statement of an RDF format. Of OBO, OWL/XML,
 * functional syntax, Manchester syntax and obographs it writes types, labels, annotations and relations of named terms.
 */
export async function exportVersion(
  version: StoredVersion,
  format: VersionExportFormat,
  write: WritePart,
  signal?: AbortSignal,
): Promise<void> {
  if (format === "ntriples") await writeTriples(version, write, signal);
  else if (format === "ro-crate") await write(formatCrate([version]));
  else {
    const { terms, edges } = await readTerms(version, signal);
    if (format === "nodes-edges") await writeLines(nodesAndEdges(terms, edges), write);
    else await writeLines(graphLines(version, terms, edges), write);
  }
}

async function writeTriples(version: StoredVersion, write: WritePart, signal: AbortSignal | undefined): Promise<void> {
  let lines: string[] = [];
  const flush = async () => {
    const text = lines.join("");
    lines = [];
    if (text !== "") await write(text);
  };
  await parseStored(
    version,
    (subject, predicate, object, kind, language, datatype) => {
      const from = formatTerm(subject, nodeKind(subject));
      lines.push(`${from} ${formatTerm(predicate, "iri")} ${formatTerm(object, kind, language, datatype)} .\n`);
    },
    signal,
    flush,
  );
  await flush();
}

async function writeLines(lines: Iterable<string>, write: WritePart): Promise<void> {
  let part: string[] = [];
  for (const line of lines) {
    part.push(line);
    if (part.length < LINES_PER_WRITE) continue;
    await write(part.join(""));
    part = [];
  }
  if (part.length > 0) await write(part.join(""));
}

/** JSON Lines: first the nodes, then the edges. */
function* nodesAndEdges(terms: ReadonlyMap<string, OntologyTerm>, edges: readonly OntologyEdge[]): Generator<string> {
  for (const { iri, type, label, definition, synonyms: named, isDeprecated, replacedBy } of terms.values()) {
    const synonyms = named.map(({ text }) => text);
    yield `${JSON.stringify({ node: iri, type, label, definition, synonyms, isDeprecated, replacedBy })}\n`;
  }
  for (const { subject, predicate, object } of edges) yield `${JSON.stringify({ subject, predicate, object })}\n`;
}

const NODE_TYPES: Readonly<Record<OntologyTerm["type"], string>> = {
  class: "CLASS",
  property: "PROPERTY",
  individual: "INDIVIDUAL",
  concept: "INDIVIDUAL",
};
const EDGE_NAMES: ReadonlyMap<string, string> = new Map([
  [SUB_CLASS_OF, "is_a"],
  [SUB_PROPERTY_OF, "subPropertyOf"],
]);

function* graphLines(
  { manifest }: StoredVersion,
  terms: ReadonlyMap<string, OntologyTerm>,
  edges: readonly OntologyEdge[],
): Generator<string> {
  const { facts, url } = manifest;
  const id = facts?.ontology_iri ?? url;
  const meta = facts?.version_iri ? { version: facts.version_iri } : {};
  yield `{"graphs":[{"id":${JSON.stringify(id)},"meta":${JSON.stringify(meta)},"nodes":[\n`;
  let comma = "";
  for (const term of terms.values()) {
    yield `${comma}${JSON.stringify(nodeOf(term))}`;
    comma = ",\n";
  }
  yield '\n],"edges":[\n';
  comma = "";
  for (const { subject, predicate, object } of edges) {
    yield `${comma}${JSON.stringify({ sub: subject, pred: EDGE_NAMES.get(predicate) ?? predicate, obj: object })}`;
    comma = ",\n";
  }
  yield "\n]}]}\n";
}

function nodeOf({ iri, type, label, definition, synonyms, isDeprecated }: OntologyTerm) {
  const meta = {
    ...(definition === undefined ? {} : { definition: { val: definition } }),
    ...(synonyms.length === 0 ? {} : { synonyms: synonyms.map(({ scope: pred, text: val }) => ({ pred, val })) }),
    ...(isDeprecated ? { deprecated: true } : {}),
  };
  const hasMeta = Object.keys(meta).length > 0;
  return {
    id: iri,
    ...(label === undefined ? {} : { lbl: label }),
    type: NODE_TYPES[type],
    ...(hasMeta ? { meta } : {}),
  };
}
