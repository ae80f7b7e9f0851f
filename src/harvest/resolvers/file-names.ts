/** Selects documents by file name: repositories also have data, code and supplements. */

export function kindByName(name: string): "pdf" | "xml" | undefined {
  if (/\.pdf$/i.test(name)) return "pdf";
  return /\.(?:xml|nxml|jats)$/i.test(name) ? "xml" : undefined;
}

const SUPPLEMENT = /suppl|appendi|annex|(?:^|[^a-z])(?:si|esm|sm)(?:[^a-z]|$)/i;

/** PDF and XML files that are no supplements, the largest first: other documents of a deposit are shorter. */
export function documentsFirst<File>(
  files: readonly File[],
  of: (file: File) => { readonly name: string; readonly bytes?: number | null | undefined },
): readonly File[] {
  return files
    .filter(file => kindByName(of(file).name) !== undefined && !SUPPLEMENT.test(of(file).name))
    .toSorted((one, other) => (of(other).bytes ?? 0) - (of(one).bytes ?? 0));
}
