import { isDeepStrictEqual } from "node:util";
import { ConfigError, DownloadError, messageOf } from "../../errors.ts";
import type { Manifest } from "./manifest.ts";
import { TABLE_NAMES, type TableName, type TablePage } from "./manifest-tables.ts";

/** How many rows were copied, by table. */
export type CopiedRows = Readonly<Record<TableName, number>>;

/**
 * Copies a manifest into an empty one. Rejects with a ConfigError, without a change, if one of them is in use, if a run
 * uses the source meanwhile, or if the target has works or runs. The source is read in one transaction, so its rows are
 * those of one instant. It is not locked.
 */
export async function copyManifest(from: Manifest, to: Manifest): Promise<CopiedRows> {
  if (await from.isInUse()) throw inUse(from);
  const lock = await to.tryLock();
  if (lock === undefined) throw inUse(to);
  try {
    const { works, runs } = await to.reports.report();
    if (works.total + works.merged + runs.length > 0)
      throw problem(`the manifest ${to.name} already has works or runs; copy to an empty manifest`);
    const copied = Object.fromEntries(TABLE_NAMES.map(table => [table, 0])) as Record<TableName, number>;
    await to.tables.write(counted(pagesOf(from), copied));
    return copied;
  } finally {
    lock.release();
  }
}

/** An error of the source must name the source: the caller reports all other errors of backends as those of the target. */
async function* pagesOf(from: Manifest): AsyncIterable<TablePage> {
  let isChanged: boolean;
  try {
    const before = await from.reports.report();
    yield* from.tables.read();
    isChanged = !isDeepStrictEqual(await from.reports.report(), before);
  } catch (cause) {
    if (from.errorFrom(cause) === cause) throw cause;
    throw new DownloadError(`cannot read the manifest ${from.name}: ${messageOf(cause)}`, { cause });
  }
  // Checked before the target is committed: changes that a run has made meanwhile would be missing in the copy.
  if (await from.isInUse()) throw inUse(from);
  if (isChanged) throw problem(`a run has used the manifest ${from.name} during the copy; copy it again`);
}

/** Counts the rows. A run that was killed is not running in the copy. */
async function* counted(pages: AsyncIterable<TablePage>, copied: Record<TableName, number>): AsyncIterable<TablePage> {
  for await (const { table, rows } of pages) {
    copied[table] += rows.length;
    const isRuns = table === "runs";
    yield { table, rows: isRuns ? rows.map(row => ({ ...row, state: stateInCopy(row["state"]) })) : rows };
  }
}

function stateInCopy(state: string | number | null | undefined): string {
  return state === "running" ? "interrupted" : String(state);
}

function inUse({ name }: Manifest): ConfigError {
  return problem(`a run uses the manifest ${name}; wait until the run ends`);
}

function problem(message: string): ConfigError {
  return new ConfigError([{ where: "manifest copy", path: "", message }]);
}
