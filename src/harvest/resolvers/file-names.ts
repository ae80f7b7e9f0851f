/** What the names of deposited files tell: repositories keep data, code and supplements beside the text. */

export function kindByName(name: string): "pdf" | "xml" | undefined {
  if (/\.pdf$/i.test(name)) return "pdf";
  return /\.(?:xml|nxml|jats)$/i.test(name) ? "xml" : undefined;
}

const SUPPLEMENT = /suppl|appendi|annex|(?:^|[^a-z])(?:si|esm|sm)(?:[^a-z]|$)/i;

/** The files that may be the text itself, the largest first: forms and tables beside it are short. */
export function documentsFirst<File>(
  files: readonly File[],
  of: (file: File) => { readonly name: string; readonly bytes?: number | null | undefined },
): readonly File[] {
  return files
    .filter(file => kindByName(of(file).name) !== undefined && !SUPPLEMENT.test(of(file).name))
    .toSorted((one, other) => (of(other).bytes ?? 0) - (of(one).bytes ?? 0));
}
