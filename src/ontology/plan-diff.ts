import { importedSources } from "./frozen-plan.ts";
import { type Lockfile, sourceDifferences } from "./lockfile.ts";
import type { PlanItem } from "./planner.ts";
import { labelOf } from "./version-label.ts";

/** The difference between a source and its entry in the lockfile. */
export interface PlanChange {
  readonly id: string;
  readonly change: "added" | "removed" | "changed" | "same" | "unknown";
  /** The fields that differ, each with both values. */
  readonly fields: readonly { readonly field: string; readonly locked: string; readonly planned: string }[];
  /** Why the comparison is not possible, for `unknown`. */
  readonly message?: string | undefined;
}

/**
 * What a pull would change: the announced version, the validators of the server, or the size. If the server and the
 * lockfile have nothing in common to compare, the change is `unknown`.
 */
export function diffPlan(items: readonly PlanItem[], lock: Lockfile): readonly PlanChange[] {
  const changes = items.map((item): PlanChange => {
    const { id } = item.source;
    const locked = lock.get(id);
    if (item.kind === "refused") return { id, change: "unknown", fields: [], message: item.message };
    if (locked === undefined) return { id, change: "added", fields: [] };
    const fields: { field: string; locked: string; planned: string }[] = [];
    /** Returns whether both sides have the value. */
    const compare = (field: string, was: string | null | undefined, is: string | undefined): boolean => {
      if (is === undefined || was === null || was === undefined) return false;
      if (was !== is) fields.push({ field, locked: was, planned: is });
      return true;
    };
    for (const { key, locked: was, wanted } of sourceDifferences(locked, item.source)) {
      fields.push({ field: `source.${key}`, locked: was, planned: wanted });
    }
    compare("url", locked.url, item.url);
    const announced = item.version === undefined ? undefined : labelOf(item.version);
    const isCompared = [
      compare("version", locked.announced_version, announced),
      compare("etag", locked.etag, item.etag) || compare("last_modified", locked.last_modified, item.lastModified),
      compare("bytes", locked.received_bytes?.toString(), item.bytes?.toString()),
    ].includes(true);
    if (fields.length > 0) return { id, change: "changed", fields };
    if (isCompared) return { id, change: "same", fields };
    return { id, change: "unknown", fields, message: "the server announces no version, validator or size to compare" };
  });
  const sources = items.map(({ source }) => source);
  const kept = new Set([...sources, ...importedSources(lock, sources)].map(({ id }) => id));
  const removed = [...lock.keys()].filter(id => !kept.has(id));
  return [...changes, ...removed.map((id): PlanChange => ({ id, change: "removed", fields: [] }))];
}
