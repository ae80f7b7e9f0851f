import { DownloadError } from "../errors.ts";
import { inspectFile } from "./file-inspection.ts";
import type { StoredVersion } from "./ontology-store.ts";
import {
  DEFINITION,
  OBO_IN_OWL,
  OWL,
  OWL_DEPRECATED,
  RDF_TYPE,
  RDFS_LABEL,
  REPLACED_BY,
  SKOS,
  SUB_CLASS_OF,
  SUB_PROPERTY_OF,
} from "./parsing/rdf-vocabulary.ts";
import type { OnStatement } from "./parsing/statement.ts";
import { isDeprecatedType, isTermName, type TermType, termTypeOf } from "./parsing/term-types.ts";

/** A class, property, individual or concept that has an IRI. */
export interface OntologyTerm {
  readonly iri: string;
  readonly type: TermType;
  /** The label without a language or in English, else the first one. */
  readonly label: string | undefined;
  readonly definition: string | undefined;
  readonly synonyms: readonly OntologySynonym[];
  readonly isDeprecated: boolean;
  readonly replacedBy: string | undefined;
}

/** Another name of a term. */
export interface OntologySynonym {
  readonly text: string;
  /** The property as OBO names it. A `skos:altLabel` has no scope, so it is `hasRelatedSynonym`. */
  readonly scope: SynonymScope;
}

const SYNONYM_SCOPES = ["hasExactSynonym", "hasRelatedSynonym", "hasNarrowSynonym", "hasBroadSynonym"] as const;
export type SynonymScope = (typeof SYNONYM_SCOPES)[number];

/** A relation between two terms. */
export interface OntologyEdge {
  readonly subject: string;
  /** An IRI: `rdfs:subClassOf`, or the property of an existential restriction. */
  readonly predicate: string;
  readonly object: string;
}

const LABELS = new Set([RDFS_LABEL, `${SKOS}prefLabel`]);
const DEFINITIONS = new Set([DEFINITION, `${SKOS}definition`]);
const SYNONYMS: ReadonlyMap<string, SynonymScope> = new Map([
  ...SYNONYM_SCOPES.map(scope => [OBO_IN_OWL + scope, scope] as const),
  [`${SKOS}altLabel`, "hasRelatedSynonym"],
]);
const EDGES = new Set([SUB_CLASS_OF, SUB_PROPERTY_OF, `${SKOS}broader`, `${SKOS}related`]);

/** A term that is being collected. Without a type it is not a term of the file. */
interface Draft {
  iri: string;
  type: TermType | undefined;
  label: string | undefined;
  /** How good the label is: 2 without a language or in English, 1 in another language, 0 without a label. */
  labelRank: number;
  definition: string | undefined;
  synonyms: OntologySynonym[];
  isDeprecated: boolean;
  replacedBy: string | undefined;
}

/** Parses a stored file and collects its terms and edges in memory. */
export async function readTerms(
  { path, manifest }: StoredVersion,
  signal?: AbortSignal,
): Promise<{ readonly terms: ReadonlyMap<string, OntologyTerm>; readonly edges: readonly OntologyEdge[] }> {
  const collector = new TermCollector();
  await parseStored({ path, manifest }, collector.collect, signal);
  return collector.result();
}

/** Passes every statement of a stored file to `onStatement`. @throws DownloadError if the file is damaged. */
export async function parseStored(
  { path, manifest }: Pick<StoredVersion, "path" | "manifest">,
  onStatement: OnStatement,
  signal?: AbortSignal,
  onChunk?: () => Promise<void>,
): Promise<void> {
  const { format, url: base, checks } = manifest;
  // Of a file that was not parsed completely the format is only a guess.
  const known = checks.depth === "full" ? { storedFormat: format } : { claim: format };
  const found = await inspectFile(path, "full", { ...known, base, signal, onStatement, onChunk });
  if (found.kind === "valid") return;
  throw new DownloadError(`${manifest.id} ${manifest.version} in the store is damaged: ${found.problem}`);
}

class TermCollector {
  readonly #drafts = new Map<string, Draft>();
  readonly #edges: OntologyEdge[] = [];
  /** Existential restrictions by their blank node, until their class and both parts are known. */
  readonly #restrictions = new Map<string, { subject?: string; property?: string; filler?: string }>();

  readonly collect: OnStatement = (subject, predicate, object, kind, language) => {
    if (subject.startsWith("_:")) {
      if (predicate === `${OWL}onProperty` && kind === "iri") this.#restriction(subject, { property: object });
      else if (predicate === `${OWL}someValuesFrom` && kind === "iri") this.#restriction(subject, { filler: object });
      return;
    }
    if (!isTermName(subject)) return;
    if (predicate === RDF_TYPE) {
      if (kind === "iri") this.#type(subject, object);
    } else if (EDGES.has(predicate)) {
      if (kind === "iri") this.#edges.push({ subject, predicate, object });
      else if (kind === "blank" && predicate === SUB_CLASS_OF) this.#restriction(object, { subject });
    } else if (predicate === OWL_DEPRECATED) {
      if (object === "true" || object === "1") this.#draft(subject).isDeprecated = true;
    } else if (predicate === REPLACED_BY) this.#draft(subject).replacedBy ??= object;
    else if (kind === "literal") this.#text(subject, predicate, object, language);
  };

  result() {
    const terms = new Map<string, OntologyTerm>();
    for (const { labelRank, type, ...term } of this.#drafts.values()) {
      if (type !== undefined) terms.set(term.iri, { ...term, type });
    }
    return { terms, edges: this.#edges };
  }

  #type(subject: string, typeIri: string): void {
    const type = termTypeOf(typeIri);
    if (type === undefined) return;
    const draft = this.#draft(subject);
    // A class, property or concept can also be an individual.
    if (draft.type === undefined || draft.type === "individual") draft.type = type;
    if (isDeprecatedType(typeIri)) draft.isDeprecated = true;
  }

  #text(subject: string, predicate: string, text: string, language: string): void {
    if (LABELS.has(predicate)) {
      const draft = this.#draft(subject);
      const rank = language === "" || language === "en" ? 2 : 1;
      if (rank <= draft.labelRank) return;
      draft.label = text;
      draft.labelRank = rank;
    } else if (DEFINITIONS.has(predicate)) this.#draft(subject).definition ??= text;
    else {
      const scope = SYNONYMS.get(predicate);
      if (scope !== undefined) this.#draft(subject).synonyms.push({ text, scope });
    }
  }

  #restriction(node: string, part: { subject?: string; property?: string; filler?: string }): void {
    const known = { ...this.#restrictions.get(node), ...part };
    const { subject, property, filler } = known;
    if (subject === undefined || property === undefined || filler === undefined) this.#restrictions.set(node, known);
    else {
      this.#restrictions.delete(node);
      this.#edges.push({ subject, predicate: property, object: filler });
    }
  }

  #draft(iri: string): Draft {
    const known = this.#drafts.get(iri);
    if (known !== undefined) return known;
    const draft: Draft = {
      iri,
      type: undefined,
      label: undefined,
      labelRank: 0,
      definition: undefined,
      synonyms: [],
      isDeprecated: false,
      replacedBy: undefined,
    };
    this.#drafts.set(iri, draft);
    return draft;
  }
}
