import { backoffMs } from "../../core/breaker/backoff.ts";
import { messageOf, StoreError } from "../../errors.ts";
import { pause } from "../../time/pause.ts";
import type { Time } from "../../time/time.ts";
import {
  type DatabaseFormat,
  ensureFile,
  hasOwnHeader,
  identityOf,
  type OpenedDatabase,
  openFile,
  setAside,
} from "./database-file.ts";
import { ForeignFileError, isBusy, isDamage, isUnusablePath } from "./sqlite-errors.ts";

export interface OpeningOptions {
  readonly path: string;
  readonly format: DatabaseFormat;
  readonly time: Time;
  readonly random: () => number;
  readonly onTrouble: (error: StoreError) => void;
  /** Only the owner may read the file. Otherwise a new file has the permissions of the umask. @default true */
  readonly isPrivate?: boolean | undefined;
}

/** Several processes that create one file at once finish within milliseconds. */
const PAUSE = { baseMs: 2, capMs: 20 };

/**
 * Opens or creates the file, also when several processes do so at once. A damaged file of this program is renamed, and
 * a new one is created; a file of another program is never changed. Rejects with a StoreError if the file is not usable
 * within `timeoutMs`.
 */
export async function openWhenFree(options: OpeningOptions, timeoutMs: number): Promise<OpenedDatabase> {
  const { path, format, time, random, isPrivate = true } = options;
  const deadlineUs = time.monotonicUs() + timeoutMs * 1000;
  for (let attempt = 1; ; attempt += 1) {
    let identity: bigint | undefined;
    try {
      // Loaded only here, because some supported versions of Node print a warning that it is experimental.
      const { DatabaseSync } = await import("node:sqlite");
      identity = ensureFile(path, isPrivate);
      return openFile(DatabaseSync, path, identity, format, isPrivate);
    } catch (error) {
      const mayRetry = isDamage(error) || isBusy(error);
      if (!mayRetry || time.monotonicUs() >= deadlineUs) throw cannotOpen(path, error);
      if (isDamage(error)) {
        const isOwn = isOwnDamagedFile(path, format);
        // Another process may have replaced the damaged file before its header was read.
        if (!isOwn && identityOf(path) === identity) throw cannotOpen(path, notOurs(error));
        if (setAsideAndReport(options, identity, error)) continue;
      }
    }
    await pause(time, backoffMs(PAUSE, attempt, random(), 1));
  }
}

/** Renames a damaged file and reports it. False if another process has done so. */
export function setAsideAndReport(
  { path, time, onTrouble }: OpeningOptions,
  identity: bigint | undefined,
  cause: unknown,
): boolean {
  let aside: string | undefined;
  try {
    aside = setAside(path, identity, time.wallMs());
  } catch (error) {
    throw new StoreError(`${path} is damaged and could not be renamed: ${messageOf(error)}`, { cause });
  }
  if (aside === undefined) return false;
  onTrouble(
    new StoreError(`${path} was damaged or not a SQLite database: it was renamed to ${aside}, a new file is used`, {
      cause,
    }),
  );
  return true;
}

/** A file that another process has just renamed counts as ours: the next attempt finds the new one. */
function isOwnDamagedFile(path: string, format: DatabaseFormat): boolean {
  try {
    return hasOwnHeader(path, format);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return true;
    throw cannotOpen(path, error);
  }
}

function notOurs(cause: unknown): ForeignFileError {
  return new ForeignFileError("the file exists and is not a database of docstokg; it was not changed", { cause });
}

function cannotOpen(path: string, cause: unknown): StoreError {
  const isPermanent = cause instanceof ForeignFileError || isUnusablePath(cause);
  const advice = isBusy(cause)
    ? "stop the process that has locked the file, or try again"
    : isUnusablePath(cause)
      ? "change the permissions of the file and its folder, or name another file"
      : "name another file";
  return new StoreError(`cannot open ${path}: ${messageOf(cause)}; ${advice}`, { cause, isPermanent });
}
