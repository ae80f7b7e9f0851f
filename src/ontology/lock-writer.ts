import { basename, dirname, join } from "node:path";
import { FileLock } from "../files/file-lock.ts";
import type { Time } from "../time/time.ts";
import { idsWithoutSource } from "./frozen-plan.ts";
import { type LockEntry, lockEntry, readLock, writeLock } from "./lockfile.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { Source } from "./resolver.ts";

/**
 * The file that a process locks while it changes a lockfile. It lies beside the lockfile, because processes with one
 * lockfile may have different stores.
 */
export function lockPathOf(lockfile: string): string {
  return join(dirname(lockfile), `.${basename(lockfile)}.lock`);
}

/** Writes the lockfile after each stored file, so that an interrupted pull has locked every file that it stored. */
export class LockWriter {
  readonly #file: string;
  readonly #time: Time;
  readonly #signal: AbortSignal | undefined;
  /** Resolves when the last change is written or has failed. */
  #lastChange: Promise<void> = Promise.resolve();

  /** @param signal ends the wait for another process that changes the lockfile. @default none */
  constructor(file: string, time: Time, signal?: AbortSignal) {
    this.#file = file;
    this.#time = time;
    this.#signal = signal;
  }

  /** Adds or replaces an entry. An imported file keeps its other importers: this run may not know them, or not yet. */
  add(source: Source, manifest: OntologyManifest, importedBy: readonly string[]): Promise<void> {
    return this.#change(lock => {
      const known = importedBy.length > 0 ? (lock.get(source.id)?.imported_by ?? []) : [];
      lock.set(source.id, lockEntry(source, manifest, [...new Set([...known, ...importedBy])]));
    });
  }

  /**
   * Corrects the importers of files that are in the lockfile.
   * @param importersOf by id, the importers that this run has found
   * @param isOutdated whether an importer that the lockfile has, and that this run has not found, is removed
   */
  setImporters(
    importersOf: ReadonlyMap<string, readonly string[]>,
    isOutdated: (importer: string) => boolean,
  ): Promise<void> {
    return this.#change(lock => {
      for (const [id, found] of importersOf) {
        const entry = lock.get(id);
        if (entry === undefined) continue;
        const others = entry.imported_by.filter(importer => !isOutdated(importer));
        lock.set(id, { ...entry, imported_by: [...new Set([...found, ...others])].sort() });
      }
    });
  }

  /** Removes the entries that are neither of a source nor of an imported file. */
  keepOnly(sources: readonly Source[], imported: ReadonlySet<string>): Promise<void> {
    return this.#change(lock => {
      for (const id of idsWithoutSource(lock, sources)) lock.delete(id);
      for (const [id, { imported_by }] of [...lock]) {
        if (imported_by.length > 0 && !imported.has(id)) lock.delete(id);
      }
    });
  }

  /** Changes run one after the other. Each reads the file again, because another process may have written it. */
  #change(change: (lock: Map<string, LockEntry>) => void): Promise<void> {
    const next = this.#lastChange.then(async () => {
      await using _lock = await this.#lock();
      const before = await readLock(this.#file);
      const lock = new Map(before);
      change(lock);
      if (lock.size > 0 || before.size > 0) await writeLock(this.#file, lock);
    });
    // A failed change does not prevent the next one. The caller of the failed change gets the error.
    this.#lastChange = next.catch(() => undefined);
    return next;
  }

  /** After an abort too, if no other process has the lock: a file that was stored gets its entry. */
  async #lock(): Promise<FileLock> {
    const path = lockPathOf(this.#file);
    const lock = await FileLock.tryAcquire(path);
    return lock ?? FileLock.acquire(path, { time: this.#time, signal: this.#signal });
  }
}
