import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { backoffMs } from "../core/breaker/backoff.ts";
import { isBusy } from "../stores/sqlite/sqlite-errors.ts";
import { pause } from "../time/pause.ts";
import type { Time } from "../time/time.ts";
import { makeFolder } from "./make-folder.ts";

export interface FileLockOptions {
  readonly time: Time;
  readonly signal?: AbortSignal | undefined;
  /** Called once if another process holds the lock. */
  readonly onWait?: (() => void) | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

/** A holder may keep the lock for as long as a large download takes, so two tries per second are enough. */
const BACKOFF = { baseMs: 25, capMs: 500 };

/**
 * A lock that one process at a time can hold: a lock of the operating system on a file. The system releases the lock
 * when the process ends in any way, so a lock is never stale. SQLite gives Node access to these locks.
 */
export class FileLock implements AsyncDisposable {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Waits until the lock is free. Rejects with the signal's reason. */
  static async acquire(
    path: string,
    { time, signal, onWait, random = Math.random }: FileLockOptions,
  ): Promise<FileLock> {
    for (let attempt = 1; ; attempt += 1) {
      signal?.throwIfAborted();
      const lock = await FileLock.tryAcquire(path);
      if (lock !== undefined) return lock;
      if (attempt === 1) onWait?.();
      await pause(time, backoffMs(BACKOFF, attempt, random(), 1), signal);
    }
  }

  /** Never waits: undefined if the lock is held. Creates the lock file and its folder. Rejects with SQLite's error. */
  static async tryAcquire(path: string): Promise<FileLock | undefined> {
    // Loaded only here, because some supported versions of Node print a warning that it is experimental.
    const { DatabaseSync } = await import("node:sqlite");
    makeFolder(dirname(path));
    const database = new DatabaseSync(path, { timeout: 0 });
    try {
      // The transaction writes nothing and is never committed; its lock lasts until the database is closed.
      database.exec("BEGIN EXCLUSIVE");
      return new FileLock(database);
    } catch (error) {
      database.close();
      if (isBusy(error)) return undefined;
      throw error;
    }
  }

  /** Whether a process holds the lock. Creates and changes no file, so a user who may only read can ask. */
  static async isHeld(path: string): Promise<boolean> {
    if (!existsSync(path)) return false;
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(path, { readOnly: true, timeout: 0 });
    try {
      database.prepare("SELECT count(*) FROM sqlite_schema").get();
      return false;
    } catch (error) {
      if (isBusy(error)) return true;
      throw error;
    } finally {
      database.close();
    }
  }

  /** May be called twice. */
  release(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
  }
}
