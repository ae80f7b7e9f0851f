import { formatOfName } from "./format.ts";
import { type Lockfile, matchesSource } from "./lockfile.ts";
import type { PlanItem } from "./planner.ts";
import { ANY_FORMAT, type Source } from "./resolver.ts";
import { RESOLVERS } from "./resolvers/all.ts";

/** The plan that a lockfile is: nobody is asked anything. What does not agree with `sources.yaml` is refused. */
export function planFromLock(sources: readonly Source[], lock: Lockfile): readonly PlanItem[] {
  return sources.map((source): PlanItem => {
    const entry = lock.get(source.id);
    const resolver = RESOLVERS.get(source.resolver);
    if (entry === undefined || resolver === undefined) {
      return { kind: "refused", source, reason: "unknown", message: "it is not in the lockfile" };
    }
    if (!matchesSource(entry, source)) {
      const message = "sources.yaml says something else than when it was locked";
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

/** What the lockfile has and `sources.yaml` has not. */
export function idsWithoutSource(lock: Lockfile, sources: readonly Source[]): readonly string[] {
  return [...lock.keys()].filter(id => !sources.some(source => source.id === id));
}
