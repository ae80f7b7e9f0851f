import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { backoffMs } from "../core/breaker/backoff.ts";
import type { Time } from "../time/time.ts";

export interface FileLockOptions {
  readonly time: Time;
  readonly signal?: AbortSignal | undefined;
  /** Told once when somebody else has it. */
  readonly onWait?: (() => void) | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

/** Whoever holds it may hold it for as long as a large file takes; to look twice a second is soon enough. */
const PAUSE = { baseMs: 25, capMs: 500 };

/**
 * One process at a time, by the operating system's own locks on a file: they end with their process, however it ends,
 * so that nobody has to guess whether a lock file is stale. SQLite is how Node gets at them.
 */
export class FileLock implements AsyncDisposable {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Waits until it is free. Rejects with the signal's reason. */
  static async take(path: string, { time, signal, onWait, random = Math.random }: FileLockOptions): Promise<FileLock> {
    await mkdir(dirname(path), { recursive: true });
    for (let attempt = 1; ; attempt += 1) {
      signal?.throwIfAborted();
      const database = await tryLock(path);
      if (database !== undefined) return new FileLock(database);
      if (attempt === 1) onWait?.();
      await pause(time, backoffMs(PAUSE, attempt, random(), 1), signal);
    }
  }

  release(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
  }
}

/** Undefined when somebody else has it. */
async function tryLock(path: string): Promise<DatabaseSync | undefined> {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(path);
  try {
    // An exclusive transaction that is never committed writes nothing, and its lock lasts until the file is closed.
    database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    const { errcode } = error as { readonly errcode?: number };
    // SQLITE_BUSY and SQLITE_LOCKED, whatever their extension.
    if (errcode !== undefined && [5, 6].includes(errcode & 0xff)) return undefined;
    throw error;
  }
}

function pause(time: Time, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = time.setTimer(ms, () => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  });
  const onAbort = () => {
    timer.cancel();
    reject(signal?.reason);
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}
