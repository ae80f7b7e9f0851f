/** Selects documents and supplements by file name: repositories also have data, code and figures. */

export function kindByName(name: string): "pdf" | "xml" | undefined {
  if (/\.pdf$/i.test(name)) return "pdf";
  return /\.(?:xml|nxml|jats)$/i.test(name) ? "xml" : undefined;
}

const SUPPLEMENT_NAME = /suppl|appendi|annex|(?:^|[^a-z])(?:si|esm|sm)(?:[^a-z]|$)/i;
const FIGURE = /\.(?:jpe?g|gif|png|tiff?|svg|webp|eps)$/i;

/** The fields that all candidates for supplements have in common. */
export const SUPPLEMENT = { kind: "file", role: "supplement" } as const;

interface NamedFile {
  readonly name: string;
  readonly bytes?: number | null | undefined;
}

/** PDF and XML files that are no supplements, the largest first: other documents of a deposit are shorter. */
export function documentsIn<File>(files: readonly File[], of: (file: File) => NamedFile): readonly File[] {
  return files
    .filter(file => isDocument(of(file).name))
    .toSorted((one, other) => (of(other).bytes ?? 0) - (of(one).bytes ?? 0));
}

/** Files that are neither documents nor figures. PDF and XML files with the name of a supplement are supplements. */
export function supplementsIn<File>(files: readonly File[], of: (file: File) => NamedFile): readonly File[] {
  return files.filter(file => !isDocument(of(file).name) && !isFigure(of(file).name));
}

/** Figures of the article, which its PDF has too. */
export function isFigure(name: string): boolean {
  return FIGURE.test(name);
}

function isDocument(name: string): boolean {
  return kindByName(name) !== undefined && !SUPPLEMENT_NAME.test(name);
}
