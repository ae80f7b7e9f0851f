import { backoffMs } from "../../core/breaker/backoff.ts";
import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { type DatabaseFormat, ensureFile, type OpenedDatabase, openFile, setAside } from "./database-file.ts";
import { isBusy, isDamage, messageOf } from "./sqlite-errors.ts";

export interface OpeningOptions {
  readonly path: string;
  readonly format: DatabaseFormat;
  readonly time: Time;
  readonly random: () => number;
  readonly onTrouble: (error: StoreError) => void;
}

/** Several processes that create one file at once are done in some milliseconds. */
const PAUSE = { baseMs: 2, capMs: 20 };

/**
 * Opens the file or creates it, however many do so at once. A file that is damaged or no database at all is set aside,
 * and a new one takes its place. Rejects with a StoreError when it cannot be had.
 */
export async function openWhenFree(options: OpeningOptions, patienceMs: number): Promise<OpenedDatabase> {
  const { path, format, time, random } = options;
  const deadlineUs = time.monotonicUs() + patienceMs * 1000;
  for (let attempt = 1; ; attempt += 1) {
    let identity: bigint | undefined;
    try {
      // Loaded only here, because some versions of Node that we support warn of it as experimental.
      const { DatabaseSync } = await import("node:sqlite");
      identity = ensureFile(path, time.wallMs());
      return openFile(DatabaseSync, path, identity, format);
    } catch (error) {
      const mayPass = isDamage(error) || isBusy(error);
      if (!mayPass || time.monotonicUs() >= deadlineUs) throw cannotOpen(path, error);
      if (isDamage(error) && setAsideAndReport(options, identity, error)) continue;
    }
    await pause(time, backoffMs(PAUSE, attempt, random(), 1));
  }
}

/** Sets a damaged file aside and tells so. False when somebody else does. */
export function setAsideAndReport(
  { path, time, onTrouble }: OpeningOptions,
  identity: bigint | undefined,
  cause: unknown,
): boolean {
  let aside: string | undefined;
  try {
    aside = setAside(path, identity, time.wallMs());
  } catch (error) {
    throw new StoreError(`${path} is damaged, and cannot be set aside: ${messageOf(error)}`, { cause });
  }
  if (aside === undefined) return false;
  onTrouble(new StoreError(`${path} was damaged or no database at all; it lies in ${aside} now`, { cause }));
  return true;
}

export function pause(time: Time, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  time.setTimer(ms, resolve);
  return promise;
}

function cannotOpen(path: string, cause: unknown): StoreError {
  return new StoreError(`${path} cannot be opened: ${messageOf(cause)}`, { cause });
}
