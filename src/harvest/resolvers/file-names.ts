/** Selects documents and supplements by file name: repositories also have data, code and figures. */
import type { RawCandidate } from "./finding.ts";

export function kindByName(name: string): "pdf" | "xml" | undefined {
  if (/\.pdf$/i.test(name)) return "pdf";
  return /\.(?:xml|nxml|jats)$/i.test(name) ? "xml" : undefined;
}

/** Not `supply`, `supplier`, `supplant`, `appendicitis`, `annexation`. */
const SUPPLEMENT_NAME = /suppl(?!y|ant|i[aec])|appendi(?:x|ces?)(?![a-z])|(?<![a-z])(?:annexe?s?|si|esm|sm)(?![a-z])/i;
const FIGURE = /\.(?:jpe?g|gif|png|tiff?|svg|webp|eps)$/i;

/** The fields that all candidates for supplements have in common. */
export const SUPPLEMENT = { kind: "file", role: "supplement" } as const;

/** A file of a repository. */
export type NamedFile = Omit<RawCandidate, "kind" | "role"> & { readonly name: string };

/**
 * The files of a deposit as candidates: PDF and XML files are documents, the largest first, because other documents of a
 * deposit are shorter. Those named like a supplement are supplements, unless all are named so: then all are documents.
 * All files that are neither documents nor figures are supplements.
 */
export function candidatesByName(files: readonly NamedFile[]): readonly RawCandidate[] {
  const readable = files.filter(({ name }) => kindByName(name) !== undefined);
  const others = readable.filter(({ name }) => !SUPPLEMENT_NAME.test(name));
  const documents = new Set(others.length === 0 ? readable : others);
  const supplements = files.filter(file => !documents.has(file) && !isFigure(file.name));
  return [
    ...[...documents]
      .toSorted((one, other) => (other.bytes ?? 0) - (one.bytes ?? 0))
      .map(file => ({ ...file, kind: kindByName(file.name) ?? "pdf" })),
    ...supplements.map(file => ({ ...file, ...SUPPLEMENT })),
  ];
}

/** Figures of the article, which its PDF has too. */
export function isFigure(name: string): boolean {
  return FIGURE.test(name);
}
