import { type Lockfile, matchesSource } from "./lockfile.ts";
import type { PlanItem } from "./planner.ts";

/** The difference between a source and its entry in the lockfile. */
export interface PlanChange {
  readonly id: string;
  readonly change: "added" | "removed" | "changed" | "same" | "unknown";
  /** The fields that differ, each with both values. */
  readonly fields: readonly { readonly field: string; readonly locked: string; readonly planned: string }[];
  /** Why the comparison was not possible, for `unknown`. */
  readonly message?: string | undefined;
}

/**
 * What a pull would change. The version is often stated only inside the file, so the validators of the server are
 * compared instead: the ETag, or Last-Modified if one side has no ETag.
 */
export function diffPlan(items: readonly PlanItem[], lock: Lockfile): readonly PlanChange[] {
  const changes = items.map((item): PlanChange => {
    const { id } = item.source;
    const locked = lock.get(id);
    if (item.kind === "refused") return { id, change: "unknown", fields: [], message: item.message };
    if (locked === undefined) return { id, change: "added", fields: [] };
    const fields: { field: string; locked: string; planned: string }[] = [];
    const compare = (field: string, was: string | null | undefined, is: string | undefined) => {
      if (is !== undefined && was !== null && was !== undefined && was !== is)
        fields.push({ field, locked: was, planned: is });
    };
    if (!matchesSource(locked, item.source)) fields.push({ field: "source", locked: "as locked", planned: "changed" });
    compare("url", locked.url, item.url);
    compare("etag", locked.etag, item.etag);
    if (item.etag === undefined || locked.etag === null)
      compare("last_modified", locked.last_modified, item.lastModified);
    return { id, change: fields.length > 0 ? "changed" : "same", fields };
  });
  const planned = new Set(changes.map(({ id }) => id));
  const removed = [...lock.keys()].filter(id => !planned.has(id));
  return [...changes, ...removed.map((id): PlanChange => ({ id, change: "removed", fields: [] }))];
}
