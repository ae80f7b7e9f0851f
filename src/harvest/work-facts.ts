import type { ListedWork } from "./manifest/manifest.ts";
import type { MetadataSources, WorkIds, WorkMetadata } from "./work.ts";

/**
 * Adds the facts of a resolver, of a list or of another row of the same work to a work. Returns the same object if nothing
 * is new. Known values are not replaced: the identifiers of the user and the metadata of better sources come first. Only a
 * retraction overrides an earlier answer.
 * @param source of all metadata, or of each field
 */
export function withFacts(
  work: ListedWork,
  source: string | MetadataSources,
  ids: WorkIds = {},
  metadata: WorkMetadata = {},
): ListedWork {
  const knownIds = defined(work.ids);
  const merged = { ...defined(ids), ...knownIds };
  const hasNewIds = Object.keys(merged).length > Object.keys(knownIds).length;
  const known = work.metadata ?? {};
  const newFields = Object.entries(metadata).filter(
    ([field, value]) =>
      value !== undefined &&
      (known[field as keyof WorkMetadata] === undefined || (field === "isRetracted" && value && !known.isRetracted)),
  );
  if (!hasNewIds && newFields.length === 0) return work;
  const sourceOf = (field: string) => (typeof source === "string" ? source : source[field as keyof WorkMetadata]);
  return {
    ...work,
    ids: merged,
    metadata: { ...known, ...Object.fromEntries(newFields) },
    sources: { ...work.sources, ...Object.fromEntries(newFields.map(([field]) => [field, sourceOf(field)])) },
  };
}

function defined(ids: WorkIds): WorkIds {
  return Object.fromEntries(Object.entries(ids).filter(([, id]) => id !== undefined));
}
