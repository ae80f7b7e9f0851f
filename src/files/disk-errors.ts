import { DownloadError, isDocstokgError } from "../errors.ts";

/** The code of a system error, such as `ENOENT`; undefined for any other value. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Undefined if the file or folder does not exist; every other error is thrown. */
export async function ifExists<Value>(read: Promise<Value>): Promise<Value | undefined> {
  try {
    return await read;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Turns an error of the file system into a DownloadError. Without this, a full disk would count as a failure of the
 * server and be retried. An error of docstokg, such as a lost lease, says what it is and stays as it is.
 */
export async function withDiskErrors<Value>(path: string, access: () => Promise<Value>): Promise<Value> {
  try {
    return await access();
  } catch (error) {
    if (isDocstokgError(error)) throw error;
    throw new DownloadError(`cannot write ${path}: ${errnoOf(error) ?? String(error)}`, { cause: error });
  }
}
