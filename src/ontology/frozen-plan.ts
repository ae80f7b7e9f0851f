import { formatOfName } from "./format.ts";
import { type Lockfile, sourceDifferences } from "./lockfile.ts";
import type { PlanItem } from "./planner.ts";
import { ANY_FORMAT, type Source } from "./resolver.ts";
import { RESOLVERS } from "./resolvers/all.ts";

/** A plan from the lockfile alone, without requests. A source that differs from its entry is refused. */
export function planFromLock(sources: readonly Source[], lock: Lockfile): readonly PlanItem[] {
  return sources.map((source): PlanItem => {
    const entry = lock.get(source.id);
    const resolver = RESOLVERS.get(source.resolver);
    if (entry === undefined) {
      const message = "not in the lockfile (run ontofetch pull without --frozen)";
      return { kind: "refused", source, reason: "unknown", message };
    }
    if (resolver === undefined) {
      const names = [...RESOLVERS.keys()].join(", ");
      const message = `unknown resolver ${JSON.stringify(source.resolver)} in the lockfile; expected ${names}`;
      return { kind: "refused", source, reason: "unknown", message };
    }
    const [difference] = sourceDifferences(entry, source);
    if (difference !== undefined) {
      const { key, locked, wanted } = difference;
      const message = `${key} in sources.yaml is ${wanted}, but ${locked} in the lockfile (run ontofetch pull without --frozen)`;
      return { kind: "refused", source, reason: "unknown", message };
    }
    const { url, version, licence } = entry;
    return {
      kind: "fetch",
      source,
      service: resolver.service,
      accept: resolver.accept ?? ANY_FORMAT,
      url,
      version,
      licence: licence ?? undefined,
      format: formatOfName(new URL(url).pathname),
      notes: [],
    };
  });
}

/** The locked files that these sources import, directly or through other imports, as sources. */
export function importedSources(lock: Lockfile, sources: readonly Pick<Source, "id" | "imports">[]): readonly Source[] {
  const importers = new Set(sources.filter(({ imports }) => imports).map(({ id }) => id));
  const found = new Map<string, Source>();
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const [id, { resolver, extras, imported_by }] of lock) {
      if (importers.has(id) || !imported_by.some(importer => importers.has(importer))) continue;
      importers.add(id);
      found.set(id, { id, resolver, targetFormats: [], extras });
    }
  }
  return [...found.values()];
}

/** The ids in the lockfile that are not in `sources.yaml`. */
export function idsWithoutSource(lock: Lockfile, sources: readonly Source[]): readonly string[] {
  return [...lock]
    .filter(([id, { imported_by }]) => imported_by.length === 0 && !sources.some(source => source.id === id))
    .map(([id]) => id);
}
