import { inheritedIn } from "../resolution-progress.ts";
import type { Work } from "../work.ts";
import { withFacts } from "../work-facts.ts";
import { fileOfRow } from "./manifest-files.ts";
import { inheritedOfRow } from "./manifest-queue.ts";
import { type Row, textOf } from "./manifest-row.ts";
import { type FactColumns, factColumns, type ListedWork, type MergeOptions, workOfRow } from "./manifest-works.ts";

/** The columns of `works` and `files` that a merge reads. */
export const MERGE_COLUMNS = `works.id, key, ids, metadata, state, run, taken_by, merged_into, progress, inherited,
  works.sha256, path, bytes, media_type, flag`;

/** The columns of a work that another row or a list can change. */
export type InheritingColumns = FactColumns & { readonly inherited: string | null };

/** What two works become that are the same. */
export interface WorkMerge {
  /** Which work stays. */
  readonly result: "merged" | "absorbed";
  readonly stays: { readonly id: number; readonly key: string };
  /** The id of the work that is merged into it. */
  readonly merged: number;
  /** The new columns of the work that stays. */
  readonly columns: InheritingColumns;
  /** The file of the merged work, if it is missing: no work has it any more. */
  readonly missing: string | null;
}

/**
 * Decides which of two works stays: the other one if its file is present, or if it is resolved, in the same run or by a
 * worker of another one. Any other work would be the end of the search, because nothing continues it.
 * @param own the row of a work that this process has taken
 * @param work what this process knows about it
 */
export function mergeOf(own: Row, other: Row, work: ListedWork, { isPresent, progress }: MergeOptions): WorkMerge {
  const hasFile = other["sha256"] !== null && isPresent(fileOfRow(other));
  const isResolved = other["state"] === "pending" && (other["run"] === own["run"] || other["taken_by"] !== null);
  const ownWork = withFacts(workOfRow(own), work.sources ?? {}, work.ids, work.metadata);
  // Progress with a secret cannot be stored. Then the saved one repeats the last step.
  const ownParts = { row: own, work: ownWork, progress: progress ?? textOf(own["progress"]), hasFile: true };
  const otherParts = { row: other, work: workOfRow(other), progress: textOf(other["progress"]), hasFile };
  const isMerged = isResolved || (other["state"] === "done" && hasFile);
  const [stays, merged] = isMerged ? [otherParts, ownParts] : [ownParts, otherParts];
  const { sources = {}, ids, metadata } = merged.work;
  // What the progress contains is not handed on twice: its steps would be repeated. A work in memory must notice the new
  // identifiers also if there is no progress.
  const { progress: text = "", row } = merged;
  const steps = [...inheritedOfRow(stays.row), text, ...inheritedOfRow(row).slice(inheritedIn(text))];
  return {
    result: isMerged ? "merged" : "absorbed",
    stays: stays.work,
    merged: merged.work.id,
    columns: {
      ...factColumns(withFacts(stays.work, sources, ids, metadata)),
      inherited: stays.row["state"] === "pending" ? JSON.stringify(steps) : null,
    },
    missing: merged.hasFile ? null : (textOf(merged.row["sha256"]) ?? null),
  };
}

/** The columns of a row after another entry of a list for the same work; undefined if the entry adds nothing. */
export function relistedColumns(row: Row, { ids, metadata }: Work): InheritingColumns | undefined {
  const known = workOfRow(row);
  const work = withFacts(known, "list", ids, metadata);
  if (work === known) return undefined;
  const isInMemory = row["taken_by"] !== null;
  const inherited = isInMemory ? JSON.stringify([...inheritedOfRow(row), ""]) : (textOf(row["inherited"]) ?? null);
  return { ...factColumns(work), inherited };
}
