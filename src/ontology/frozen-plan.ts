import { formatOfName } from "./format.ts";
import { type Lockfile, matchesSource } from "./lockfile.ts";
import type { PlanItem } from "./planner.ts";
import { ANY_FORMAT, type Source } from "./resolver.ts";
import { RESOLVERS } from "./resolvers/all.ts";

/** A plan from the lockfile alone, without requests. A source that differs from its entry is refused. */
export function planFromLock(sources: readonly Source[], lock: Lockfile): readonly PlanItem[] {
  return sources.map((source): PlanItem => {
    const entry = lock.get(source.id);
    const resolver = RESOLVERS.get(source.resolver);
    if (entry === undefined || resolver === undefined) {
      return {
        kind: "refused",
        source,
        reason: "unknown",
        message: "not in the lockfile (run ontofetch pull without --frozen)",
      };
    }
    if (!matchesSource(entry, source)) {
      const message = "sources.yaml has changed since the lockfile was written (run ontofetch pull without --frozen)";
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

/** The ids in the lockfile that are not in `sources.yaml`. */
export function idsWithoutSource(lock: Lockfile, sources: readonly Source[]): readonly string[] {
  return [...lock.keys()].filter(id => !sources.some(source => source.id === id));
}
