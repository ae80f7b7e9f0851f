import type { Reason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { MetadataSources, Work, WorkIds, WorkMetadata } from "../work.ts";
import type { AttemptOfRun } from "./attempt-record.ts";
import type { StoredFile } from "./manifest-files.ts";
import type { Row } from "./manifest-row.ts";

/** A work in the manifest. */
export interface ListedWork extends Work {
  /** Row id. */
  readonly id: number;
  /** The resolver that each field of the metadata comes from. */
  readonly sources?: MetadataSources | undefined;
}

/** The works of a list, by what the run does with them. */
export interface ListedCounts {
  /** This run will resolve them. */
  readonly pending: number;
  /** Done in an earlier run, with the file present. */
  readonly present: number;
  /** Failed in an earlier run and not tried again. */
  readonly failed: number;
}

export interface ListedWorks extends ListedCounts {
  /** The row ids of the `failed` works. */
  readonly failedIds: readonly number[];
}

export interface AddedWorks extends ListedWorks {
  /** Pending works by the queue of their next step. */
  readonly queues: ReadonlyMap<string, number>;
}

export interface AddOptions {
  /** Whether the file of a done work is still there. */
  readonly isPresent: (file: StoredFile) => boolean;
  /** Works that are done are pending again. @default false */
  readonly isRefresh?: boolean | undefined;
  /** Works that have failed are pending again; those that a spent quota has stopped continue there. @default false */
  readonly isRetry?: boolean | undefined;
  /** The queue of the first step of a work. @default one queue for all works */
  readonly queueOf?: ((work: Work) => string) | undefined;
}

export interface MergeOptions {
  /** Whether the file of a work is still there. */
  readonly isPresent: AddOptions["isPresent"];
  /** What the search for a copy of the work has done so far. If the other work stays, it continues there. @default as saved */
  readonly progress?: string | undefined;
}

/**
 * - `merged`: the work was merged into the other one.
 * - `absorbed`: the other work was merged into this one.
 * - `outdated`: the other work was merged meanwhile, with a third work or with this one. Nothing is changed, and
 *   `update` returns which work has the identifiers.
 */
export type MergeResult = "merged" | "absorbed" | "outdated";

/** Which works a manifest has, under which identifiers. */
export interface ManifestWorks {
  /** Adds works to a run. Works that are done stay done if their file is present. */
  add(run: number, works: readonly Work[], options: AddOptions): Promise<AddedWorks>;
  /**
   * Adds all unfinished works to a run, and the failed works of some reasons, or of all. Returns their number.
   * @param isContinued whether failed works continue where they stopped, or start again
   */
  addUnfinished(run: number, reasons: readonly Reason[] | "all", isContinued: boolean): Promise<number>;
  /** Adds the failed works of a reason to a run that is in progress, from their first step. Returns their number. */
  addFailed(run: number, reason: Reason): Promise<number>;
  /** Makes the works of files pending again, because the files are missing or damaged. Returns their number. */
  reopen(sha256s: readonly string[]): Promise<number>;
  /**
   * Stores the identifiers and metadata that resolvers have added. Returns the id of another work that has one of the
   * identifiers; undefined if there is none.
   * @param request the attempt that has found them, which is recorded too. @default none
   */
  update(work: ListedWork, request?: AttemptOfRun): Promise<number | undefined>;
  /**
   * Makes one work of a work that this process has taken and of another one. The one that stays gets the identifiers,
   * metadata and files of both. If it is pending, it also gets the progress of the other one: `TakenWork.inherited`. The
   * other work stays if its file is present, or if it is pending in the same run or at another worker.
   */
  merge(work: ListedWork, other: number, options: MergeOptions): Promise<MergeResult>;
  /** `done`, `failed`, `pending`, or undefined if the manifest does not have the work. */
  stateOf(work: Work): Promise<string | undefined>;
}

/** A work of a row with the columns `id`, `key`, `ids` and `metadata`. */
export function workOfRow(row: Row): ListedWork {
  const { sources, ...metadata } = JSON.parse(String(row["metadata"] ?? "{}")) as WorkMetadata & {
    readonly sources?: MetadataSources;
  };
  const isEmpty = Object.keys(metadata).length === 0;
  return {
    id: Number(row["id"]),
    key: String(row["key"]),
    ids: JSON.parse(String(row["ids"])) as WorkIds,
    ...(isEmpty ? {} : { metadata, sources: sources ?? {} }),
  };
}

/** The columns that say what is known about a work. */
export interface FactColumns {
  readonly ids: string;
  /** Null for works of the first version too, whose title and year are not in `metadata`: the columns keep their values. */
  readonly title: string | null;
  readonly year: number | null;
  readonly metadata: string | null;
}

export function factColumns({ ids, metadata, sources = {} }: Omit<ListedWork, "id" | "key">): FactColumns {
  const { title = null, year = null } = metadata ?? {};
  const json = metadata === undefined ? null : JSON.stringify({ ...metadata, sources });
  return { ids: storedIds(ids), title, year, metadata: json };
}

/** The metadata of a listed work comes from the list. */
export function listedFacts({ ids, metadata }: Work): FactColumns {
  const fields = Object.keys(metadata ?? {});
  return factColumns({ ids, metadata, sources: Object.fromEntries(fields.map(field => [field, "list"])) });
}

/** The identifiers by which works are compared. URLs are left out, because one page may have copies of several works. */
export function idNames(ids: WorkIds): readonly string[] {
  return Object.entries(ids).flatMap(([scheme, id]) =>
    id === undefined || scheme === "url" ? [] : [`${scheme}:${id}`],
  );
}

/**
 * The id of the work that a work was merged into, through any number of merges; its own id if it was not merged. Earlier
 * versions could merge works in a circle: these count as not merged.
 */
export function mergeTarget(id: unknown, mergedInto: (id: unknown) => unknown): unknown {
  const visited = new Set<unknown>();
  let target = id;
  for (let next = mergedInto(target); typeof next === "number"; next = mergedInto(target)) {
    if (visited.has(target)) return target;
    visited.add(target);
    target = next;
  }
  return target;
}

/** The identifiers as JSON, without secrets. */
export function storedIds(ids: WorkIds): string {
  return JSON.stringify(ids.url === undefined ? ids : { ...ids, url: redactedUrl(ids.url) });
}
