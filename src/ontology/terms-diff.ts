import type { OntologyTerm } from "./ontology-terms.ts";

/** What happened to a term between two versions. Terms that are deprecated, restored or renamed are in both. */
export interface TermChange {
  readonly change: "added" | "removed" | "deprecated" | "restored" | "renamed";
  readonly iri: string;
  /** The label in the new version, or in the old one for a removed term. */
  readonly label: string | undefined;
  /** The label in the old version, for a renamed term. */
  readonly oldLabel?: string | undefined;
  /** The term that replaces a deprecated one, if the file names it. */
  readonly replacedBy?: string | undefined;
}

const ORDER = ["removed", "deprecated", "renamed", "added", "restored"] as const;

/** The differences, sorted by kind and IRI. A term that was renamed and deprecated has two entries. */
export function diffTerms(
  before: ReadonlyMap<string, OntologyTerm>,
  after: ReadonlyMap<string, OntologyTerm>,
): readonly TermChange[] {
  const changes: TermChange[] = [];
  for (const [iri, { label }] of before) if (!after.has(iri)) changes.push({ change: "removed", iri, label });
  for (const [iri, { label, isDeprecated, replacedBy }] of after) {
    const old = before.get(iri);
    if (old === undefined) changes.push({ change: "added", iri, label });
    else {
      if (isDeprecated && !old.isDeprecated) changes.push({ change: "deprecated", iri, label, replacedBy });
      if (!isDeprecated && old.isDeprecated) changes.push({ change: "restored", iri, label });
      if (label !== old.label) changes.push({ change: "renamed", iri, label, oldLabel: old.label });
    }
  }
  return changes.sort(
    (a, b) => ORDER.indexOf(a.change) - ORDER.indexOf(b.change) || (a.iri < b.iri ? -1 : a.iri > b.iri ? 1 : 0),
  );
}
