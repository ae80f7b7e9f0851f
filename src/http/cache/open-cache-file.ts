import { messageOf, StoreError } from "../../errors.ts";
import { type OpeningOptions, openWhenFree } from "../../stores/sqlite/open-database.ts";
import { CacheFile } from "./cache-file.ts";

export interface OpenCacheFileOptions extends OpeningOptions {
  readonly maxBytes: number;
}

/** An open file and its identity (inode): the path may later lead to another file. */
export interface OpenedCacheFile {
  readonly file: CacheFile;
  readonly identity: bigint | undefined;
}

/** Processes that create one file at the same time need milliseconds; a longer lock is held by a stuck program. */
const OPEN_WAIT_MS_MAX = 5000;

/** Undefined when the file cannot be opened; then `onTrouble` was called with the reason. */
export async function openCacheFile({
  maxBytes,
  ...options
}: OpenCacheFileOptions): Promise<OpenedCacheFile | undefined> {
  try {
    const { db, identity } = await openWhenFree(options, OPEN_WAIT_MS_MAX);
    // Large bodies make the write-ahead log grow; SQLite truncates it to this size.
    db.exec("PRAGMA journal_size_limit = 16777216");
    return { file: new CacheFile(db, maxBytes), identity };
  } catch (error) {
    options.onTrouble(
      new StoreError(`cache file ${options.path} cannot be opened, so nothing is cached: ${messageOf(error)}`, {
        cause: error,
      }),
    );
    return undefined;
  }
}
