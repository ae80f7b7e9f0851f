import { StoreError } from "../../errors.ts";
import { type OpeningOptions, openWhenFree } from "../../stores/sqlite/open-database.ts";
import { messageOf } from "../../stores/sqlite/sqlite-errors.ts";
import { CacheFile } from "./cache-file.ts";

export interface OpenCacheFileOptions extends OpeningOptions {
  readonly maxBytes: number;
}

/** The file and which one it is: the path may come to lead to another. */
export interface OpenedCacheFile {
  readonly file: CacheFile;
  readonly identity: bigint | undefined;
}

/** Several processes that create one file at once are done in some milliseconds; more is somebody's stuck shell. */
const OPEN_WAIT_MS_MAX = 5000;

/** Undefined when it cannot be had; then trouble was told. */
export async function openCacheFile({
  maxBytes,
  ...options
}: OpenCacheFileOptions): Promise<OpenedCacheFile | undefined> {
  try {
    const { db, identity } = await openWhenFree(options, OPEN_WAIT_MS_MAX);
    // Bodies make the log grow; it is cut back to this.
    db.exec("PRAGMA journal_size_limit = 16777216");
    return { file: new CacheFile(db, maxBytes), identity };
  } catch (error) {
    options.onTrouble(new StoreError(`nothing is cached: ${messageOf(error)}`, { cause: error }));
    return undefined;
  }
}
